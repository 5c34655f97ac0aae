//! Exact decimal numbers, so that 0.1 and 0.2 make 0.3.

use num_bigint::BigInt;

use crate::error::Fail;

/// `digits` times ten to the power of `exponent`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i64,
}

/// Digits after the point that a division keeps.
const DIVISION_PLACES: i64 = 16;

impl Decimal {
    /// The shortest decimal that reads back as this float.
    pub(super) fn from_float(value: f64) -> Result<Self, Fail> {
        if !value.is_finite() {
            let shown = govalue::Value::from(value);
            return Err(format!("Cannot create a Decimal from {shown}").into());
        }
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}").parse().unwrap_or_default();
        let exponent = exponent.parse::<i64>().unwrap_or(0) - fraction.len() as i64;
        Ok(Self { digits, exponent })
    }

    /// The nearest float.
    pub(super) fn to_float(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent).parse().unwrap_or(0.0)
    }

    /// The digits for a smaller exponent.
    fn scaled(&self, exponent: i64) -> BigInt {
        &self.digits * power(self.exponent - exponent)
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self { digits: self.scaled(exponent) + other.scaled(exponent), exponent }
    }

    pub(super) fn subtract(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        Self { digits: self.scaled(exponent) - other.scaled(exponent), exponent }
    }

    pub(super) fn multiply(&self, other: &Self) -> Self {
        Self { digits: &self.digits * &other.digits, exponent: self.exponent + other.exponent }
    }

    /// Rounded half away from zero.
    pub(super) fn divide(&self, other: &Self) -> Result<Self, Fail> {
        let zero = BigInt::default();
        if other.digits == zero {
            return Err("decimal division by 0".into());
        }
        let shift = self.exponent - other.exponent + DIVISION_PLACES;
        let (over, under) = if shift < 0 {
            (self.digits.clone(), &other.digits * power(-shift))
        } else {
            (&self.digits * power(shift), other.digits.clone())
        };
        let mut digits = &over / &under;
        let rest = (&over % &under).magnitude() * 2u32;
        if &rest >= under.magnitude() {
            if (over < zero) == (under < zero) {
                digits += 1;
            } else {
                digits -= 1;
            }
        }
        Ok(Self { digits, exponent: -DIVISION_PLACES })
    }
}

fn power(exponent: i64) -> BigInt {
    BigInt::from(10).pow(exponent.max(0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(value: f64) -> Decimal {
        Decimal::from_float(value).unwrap()
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "exactness is the point")]
    fn arithmetic_is_exact() {
        assert_eq!(decimal(0.1).add(&decimal(0.2)).to_float(), 0.3);
        assert_eq!(decimal(0.3).subtract(&decimal(0.1)).to_float(), 0.2);
        assert_eq!(decimal(1.1).multiply(&decimal(1.1)).to_float(), 1.21);
        assert_eq!(decimal(1e20).add(&decimal(1.0)).to_float(), 1e20);
        assert_eq!(decimal(2.0).divide(&decimal(3.0)).unwrap().to_float(), 0.666_666_666_666_666_7);
        assert_eq!(
            decimal(-2.0).divide(&decimal(3.0)).unwrap().to_float(),
            -0.666_666_666_666_666_7
        );
        assert_eq!(decimal(1e-30).divide(&decimal(1.0)).unwrap().to_float(), 0.0);
        assert_eq!(decimal(1e308).add(&decimal(5e-324)).to_float(), 1e308);
        assert!(decimal(1.0).divide(&decimal(0.0)).is_err());
        assert!(Decimal::from_float(f64::NAN).is_err());
    }
}
