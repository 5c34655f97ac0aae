//! No input may panic, and what is written can be read again.

use govalue::json::{self, Numbers, Options};
use govalue::{Duration, Map, Str, Time, Value, Zone, layout, sprint, sprintf};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<Vec<u8>>().prop_map(|bytes| Value::from(Str::from(bytes))),
        any::<Vec<u8>>().prop_map(Value::bytes),
        any::<i64>().prop_map(|nanos| Value::from(Duration(nanos))),
        any::<(i64, i64)>().prop_map(|(unix, nanos)| Value::from(Time::from_unix(
            unix,
            nanos,
            Zone::UTC
        ))),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_value_prints(value in value()) {
        let _ = sprint(std::slice::from_ref(&value));
        let _ = json::encode(&value, Options::default());
    }

    #[test]
    fn any_format_prints(
        format in "[%vdsqxXobeEfFgGtcUTp #+0-9.*\\[\\]a-z-]{0,12}",
        values in prop::collection::vec(value(), 0..3),
    ) {
        let _ = sprintf(&format, &values);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = json::decode(&text, Numbers::Ints);
        let _ = Duration::parse(&text);
        let _ = layout::parse(&text, &text);
        let _ = Zone::load(&text);
        let _ = Time::zero().format(&text);
        let _ = govalue::parse_int(&text, 0);
        let _ = govalue::parse_float(&text);
    }

    #[test]
    fn any_layout_reads_or_refuses(
        format in "[JanuryMo1234506PM_Z.,: -]{0,16}",
        text in "[0-9A-Za-z:+ .-]{0,16}",
    ) {
        let _ = layout::parse(&format, &text);
    }

    #[test]
    fn floats_read_back(
        float in any::<f64>().prop_filter("finite", |float| float.is_finite()),
    ) {
        let printed = Value::from(float).to_string();
        prop_assert_eq!(printed.parse::<f64>(), Ok(float));
        let coded = json::encode(&float.into(), Options::default()).unwrap();
        prop_assert_eq!(coded.parse::<f64>(), Ok(float));
    }

    #[test]
    fn durations_read_back(nanos in any::<i64>()) {
        prop_assert_eq!(Duration::parse(&Duration(nanos).to_string()), Ok(Duration(nanos)));
    }

    #[test]
    fn times_read_back(
        unix in -60_000_000_000_i64..250_000_000_000,
        nanos in 0_i64..1_000_000_000,
    ) {
        let time = Time::from_unix(unix, nanos, Zone::UTC);
        let text = time.format(layout::RFC3339_NANO);
        let read = layout::parse(layout::RFC3339_NANO, &text).unwrap();
        prop_assert_eq!(read.instant(), time.instant());
    }
}
