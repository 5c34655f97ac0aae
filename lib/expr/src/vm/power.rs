//! Powers, with the rounding of the reference implementation.
//!
//! The reference multiplies squares where the platform's function would round
//! once, so the last digits differ. Expressions print those digits.

/// `x` to the power of `y`.
#[expect(clippy::float_cmp, reason = "the special cases are exact values")]
pub(super) fn power(x: f64, y: f64) -> f64 {
    const WHOLE_LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let special = !x.is_finite() || !y.is_finite() || x == 0.0 || y == 0.0 || x == 1.0 || y == 1.0;
    if special || y.abs() >= WHOLE_LIMIT || (x < 0.0 && y.fract() != 0.0) {
        return x.powf(y);
    }
    if y.abs() == 0.5 {
        return if y > 0.0 { x.sqrt() } else { 1.0 / x.sqrt() };
    }
    let mut whole = y.abs().trunc();
    let mut part = y.abs() - whole;
    if part > 0.5 {
        part -= 1.0;
        whole += 1.0;
    }
    let mut result =
        Scaled { mantissa: if part == 0.0 { 1.0 } else { (part * x.ln()).exp() }, exponent: 0 };
    let mut square = Scaled::of(x);
    let mut bits = whole as u64;
    while bits != 0 {
        // Far beyond what a float can hold; more squares change nothing.
        if square.exponent.abs() > 1 << 12 {
            result.exponent += square.exponent;
            break;
        }
        if bits & 1 == 1 {
            result.mantissa *= square.mantissa;
            result.exponent += square.exponent;
        }
        square.square();
        bits >>= 1;
    }
    if y < 0.0 {
        result.mantissa = 1.0 / result.mantissa;
        result.exponent = -result.exponent;
    }
    result.value()
}

/// A number as a mantissa times a power of two.
struct Scaled {
    mantissa: f64,
    exponent: i64,
}

impl Scaled {
    /// Splits a finite number so that the mantissa is at least a half and less
    /// than one.
    fn of(value: f64) -> Self {
        const MANTISSA_BITS: u32 = 52;
        let (value, shift) =
            if value.abs() < f64::MIN_POSITIVE { (value * 2f64.powi(64), 64) } else { (value, 0) };
        let bits = value.to_bits();
        let exponent = (bits >> MANTISSA_BITS & 0x7ff) as i64 - 1022 - shift;
        let mantissa = f64::from_bits(bits & !(0x7ff << MANTISSA_BITS) | 1022 << MANTISSA_BITS);
        Self { mantissa, exponent }
    }

    fn square(&mut self) {
        self.mantissa *= self.mantissa;
        self.exponent *= 2;
        if self.mantissa < 0.5 {
            self.mantissa *= 2.0;
            self.exponent -= 1;
        }
    }

    /// The number, infinite or zero where it does not fit.
    fn value(&self) -> f64 {
        let (mut value, mut left) = (self.mantissa, self.exponent.clamp(-4000, 4000));
        while left != 0 {
            let step = left.clamp(-1000, 1000);
            value *= 2f64.powi(step as i32);
            left -= step;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::power;

    #[test]
    #[expect(clippy::float_cmp, reason = "the last digit is what is tested")]
    fn rounding_and_special_cases() {
        for (x, y, want) in [
            (2.0, 10.0, 1024.0),
            (2.0, -1.0, 0.5),
            (-2.0, 3.0, -8.0),
            (10.0, 308.0, 1.000_000_000_000_000_6e308),
            (9_007_199_254_740_993.0, 2.5, 7.699_711_013_376_141e39),
            (2.0, 0.5, std::f64::consts::SQRT_2),
            (0.0, -3.0, f64::INFINITY),
            (2.0, 1e6, f64::INFINITY),
            (2.0, -1e6, 0.0),
            (1.0, f64::NAN, 1.0),
        ] {
            let got = power(x, y);
            assert!(got == want, "{x} ** {y} is {got:e}, not {want:e}");
        }
        assert!(power(-8.0, 1.0 / 3.0).is_nan());
    }
}
