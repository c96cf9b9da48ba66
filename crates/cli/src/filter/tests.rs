//! Filters against events that are written out, and against a model of themselves.

use super::*;
use proptest::prelude::*;
use std::path::Path;

const N2: Party<'_> = Party { station: 2, name: "n2", mac: Some([2, 0, 0, 0, 0, 0xab]) };
const N3: Party<'_> = Party { station: 3, name: "n3", mac: None };

fn token() -> Fields<'static> {
    let (kind, event) = (Some("token"), Some("received"));
    Fields { src: Some(N3), dst: Some(N2), kind, event, length: Some(76), ..Fields::default() }
}

fn llc() -> Fields<'static> {
    let saps = Some([4, 6]);
    Fields { src: Some(N2), kind: Some("llc"), priority: Some(7), saps, ..Fields::default() }
}

fn holds(filter: &str, fields: &Fields<'_>) -> bool {
    Filter::parse(filter, &OF_EVENTS).unwrap_or_else(|error| panic!("{error}")).matches(fields)
}

#[test]
fn the_examples_of_the_page_select_what_they_say() {
    for filter in ["", "src n3 and kind token", "host n2", "src 3", "dst 02:00:00:00:00:AB", "not llc"] {
        assert!(holds(filter, &token()), "{filter}");
    }
    for filter in ["dst n3", "src n2", "llc", "len > 76", "channel 5", "channel != 5", "priority >= 0"] {
        assert!(!holds(filter, &token()), "{filter}");
    }
    for filter in ["priority >= 6 or channel 5", "sap 4", "sap=6", "sap != 8", "!token&&prio<=7"] {
        assert!(holds(filter, &llc()), "{filter}");
    }
    for filter in ["sap 8", "sap != 4", "len > 0", "dst n2", "dst != n2", "kind != llc"] {
        assert!(!holds(filter, &llc()), "{filter}");
    }
}

#[test]
fn and_binds_tighter_than_or_and_parentheses_tighter_still() {
    assert!(holds("token or llc and src nobody", &token()));
    assert!(!holds("(token or llc) and src nobody", &token()));
    assert!(holds("not llc and token", &token()), "not binds tightest");
    assert!(holds("!(llc||kind data)", &token()));
}

#[test]
fn other_names_of_kinds_and_quoted_names_are_understood() {
    let data = Fields { kind: Some("data"), ..Fields::default() };
    assert!(holds("real-time", &data) && holds("kind rt", &data) && !holds("nrt", &data));
    let odd = Party { station: 0, name: "and so on", mac: None };
    assert!(holds("src \"And so on\"", &Fields { src: Some(odd), ..data }));
    assert!(!holds("src 0", &Fields { src: Some(odd), ..data }), "0 is no station's number");
}

#[test]
fn a_wrong_filter_names_its_column_and_what_would_be_right() {
    let cases = [
        ("src n3 and", 11, "the filter ends", "expected a field"),
        ("src n3 and priorty 5", 12, "unexpected 'priorty'", "did you mean 'priority'?"),
        ("src n1 and knd token", 12, "'knd'", "did you mean 'kind'?"),
        ("priority 9", 10, "'9'", "a number from 0 to 7"),
        ("len > many", 7, "'many'", "a number"),
        ("kind tokn", 6, "'tokn'", "did you mean 'token'?"),
        ("(token or llc", 14, "the filter ends", "expected ')' for the '(' in column 1"),
        ("token llc", 7, "'llc'", "'and', 'or' or the end"),
        ("token)", 6, "')'", "'and', 'or' or the end"),
        ("src )", 5, "')'", "a station's name"),
        ("src and", 5, "'and'", "a station's name"),
        ("not host or token", 10, "'or'", "a station's name"),
        ("dst 02:00:00:00:00:zz", 5, "'02:00:00:00:00:zz'", "six pairs"),
        ("dst 02:00:00:00:00", 5, "'02:00:00:00:00'", "six pairs"),
        ("src 'n3", 5, "a quotation begins", "must end it"),
        ("token & llc", 7, "'&'", "'and', 'or'"),
        ("kind", 5, "the filter ends", "one of: announce"),
        ("sap -4", 5, "'-4'", "from 0 to 255"),
        ("ö \u{7} or", 1, "'ö'", "a field"),
    ];
    for (text, column, found, wanted) in cases {
        let error = Filter::parse(text, &OF_EVENTS).expect_err(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.found.contains(found) && error.wanted.contains(wanted), "{text}: {error}");
        let caret = error.to_string().lines().last().map(str::len);
        assert_eq!(caret, Some(column + 2), "the caret stands below the place");
    }
}

/// 'and' was said to mean 'kind', and 'or' 'form'.
#[test]
fn a_guess_is_only_made_where_it_is_likely() {
    let guess = |text: &str| Filter::parse(text, &OF_EVENTS).expect_err(text).wanted.contains("did you mean");
    for text in ["and", "token and or", "kind foo", "len > 3 and not cat", "ab n3"] {
        assert!(!guess(text), "{text}");
    }
    for text in ["srx n3", "hst n1", "kind tokn", "kind ordnary", "chanel 3"] {
        assert!(guess(text), "{text}");
    }
}

#[test]
fn a_long_filter_is_shown_around_the_place_only() {
    for text in ["token and ".repeat(5_000) + "tokn" + &" or llc".repeat(5_000), "x".repeat(100_000)] {
        let error = Filter::parse(&text, &OF_EVENTS).expect_err("it is wrong");
        let told = error.to_string();
        assert!(told.len() < 800, "{} octets", told.len());
        let [_, shown, caret] = told.lines().collect::<Vec<_>>()[..] else { panic!("{told}") };
        let place = caret.chars().count() - 1;
        assert_eq!(shown.chars().nth(place), text.chars().nth(error.column - 1), "{told}");
    }
}

#[test]
fn a_filter_too_deep_is_refused_and_not_a_crash() {
    let deep = "(".repeat(100_000) + "token";
    assert_eq!(Filter::parse(&deep, &OF_EVENTS).expect_err("too deep").column, 66);
    assert!(Filter::parse(&"!".repeat(100_000), &OF_EVENTS).is_err());
    let long = vec!["token"; 10_000].join(" and ");
    assert!(holds(&long, &token()), "long is not deep");
}

#[test]
fn a_station_may_have_any_name_in_quotes() {
    for name in ["and", "not", "a:b", ")"] {
        assert!(Filter::parse(&format!("src '{name}'"), &OF_EVENTS).is_ok(), "{name}");
    }
    assert!(Filter::parse("src 02:52:4F:54:41:02", &OF_EVENTS).is_ok());
}

#[test]
fn words_come_as_arguments_too() {
    let words = ["src", "n3", "and", "kind token"].map(String::from);
    assert!(Filter::from_words(&words).unwrap().matches(&token()));
    assert_eq!(Filter::from_words(&[]).unwrap(), Filter::default());
}

/// A formula, its filter text, and what it is worth for `token()`, worked out on another way.
fn formula() -> impl Strategy<Value = (String, bool)> {
    let leaf = prop_oneof![
        Just(("src n3".to_owned(), true)),
        Just(("kind=llc".to_owned(), false)),
        Just(("received".to_owned(), true)),
        Just(("channel 1".to_owned(), false)),
        (0u32..200).prop_map(|bound| (format!("len >= {bound}"), 76 >= bound)),
        (0u32..200).prop_map(|bound| (format!("length<{bound}"), 76 < bound)),
        (0u32..200).prop_map(|bound| (format!("len != {bound}"), 76 != bound)),
    ];
    leaf.prop_recursive(6, 64, 2, |inner| {
        let pair = (inner.clone(), inner.clone(), any::<bool>());
        prop_oneof![
            inner.prop_map(|(text, value)| (format!("not ({text})"), !value)),
            pair.clone().prop_map(|((a, x), (b, y), sign)| {
                (format!("({a}) {} ({b})", if sign { "and" } else { "&&" }), x && y)
            }),
            pair.prop_map(|((a, x), (b, y), sign)| {
                (format!("({a}){}({b})", if sign { " or " } else { "||" }), x || y)
            }),
        ]
    })
}

const PIECES: &[&str] = &["src", "n3", "and", "or", "not", "(", ")", "len", "<=", "5", "token", "'"];

proptest! {
    #[test]
    fn a_formula_is_worth_what_its_parts_are((text, value) in formula()) {
        prop_assert_eq!(holds(&text, &token()), value, "{}", text);
    }

    #[test]
    fn spaces_make_no_difference((text, value) in formula(), spaces in " {1,3}") {
        let wide = text.replace('(', &format!("{spaces}({spaces}")).replace(' ', &spaces);
        prop_assert_eq!(holds(&wide, &token()), value, "{}", wide);
    }

    #[test]
    fn no_text_brings_the_reader_down(text in "\\PC{0,60}") {
        fuzz_filter(text.as_bytes());
    }

    #[test]
    fn words_in_any_order_neither(words in prop::collection::vec(prop::sample::select(PIECES), 0..12)) {
        fuzz_filter(words.join(" ").as_bytes());
    }
}

#[test]
fn the_corpus_replays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/filter");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3, "the corpus of filters is missing");
    for file in files {
        let data = std::fs::read(&file).unwrap();
        fuzz_filter(&data);
        for end in 0..data.len() {
            fuzz_filter(&data[..end]);
        }
    }
}
