use super::*;
use crate::canon::LossCode;
use crate::json::Raw;

fn raw(json: &str) -> Raw<'static> {
    Raw::parse(json.to_owned()).expect(json)
}

/// `want`: what stands behind `args`, `~` for repaired and `!` for what does not fit.
#[track_caller]
fn check(schema: &str, args: &str, want: &str, losses: &[&str]) {
    let checker = Checker::new(Some(&raw(schema)));
    let checked = checker.check(raw(args));
    let said: Vec<String> = checked
        .losses
        .iter()
        .map(|loss| {
            let mark = if loss.code == LossCode::ArgumentRepaired { '~' } else { '!' };
            format!("{mark}{}", loss.at.strip_prefix("args").unwrap().trim_start_matches('.'))
        })
        .collect();
    assert_eq!(
        (checked.args.get(), said.as_slice()),
        (want, &losses.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..]),
        "{schema}"
    );
    assert_eq!(checker.violations(&raw(args)).is_empty(), checker.accepts(&raw(args)), "{schema}");
    let again = checker.check(checked.args.clone());
    assert_eq!(again.args, checked.args, "repairing twice");
    assert!(
        again.losses.iter().all(|it| it.code == LossCode::ArgumentViolation),
        "repairing twice"
    );
}

/// A schema with one property `a`.
#[track_caller]
fn check_a(schema: &str, value: &str, want: &str, losses: &[&str]) {
    let object = |value: &str| format!(r#"{{"a":{value}}}"#);
    let schema = format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    check(&schema, &object(value), &object(want), losses);
}

#[test]
fn what_fits_is_not_touched() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"number"},"s":{"type":"string"}}}"#;
    for args in [
        r#"{"n": 1.0, "s":"3"}"#,
        r#"{ "z" : 1e400 , "n":1.50,"s":"\u00e9\ud800", "n": 2 }"#,
        r#"{"title":"a","$ref":"b","s":""}"#,
        "{}",
    ] {
        check(schema, args, args, &[]);
    }
}

#[test]
fn a16_whole_numbers() {
    for (from, to) in [
        ("1.0", "1"),
        ("-2.00", "-2"),
        ("1e3", "1000"),
        ("2.5E1", "25"),
        ("0.0", "0"),
        ("-0.0", "0"),
        ("9007199254740993.0", "9007199254740993"),
        ("120e-1", "12"),
        ("0.012e3", "12"),
    ] {
        check_a(r#"{"type":"integer"}"#, from, to, &["~a"]);
        check_a(r#"{"type":["INTEGER","NULL"]}"#, from, to, &["~a"]);
        check_a(r#"{"type":"number"}"#, from, from, &[]);
        check_a(r#"{"anyOf":[{"type":"integer"},{"type":"number"}]}"#, from, from, &[]);
    }
    for odd in ["1.5", "1e-1", "1e400", "1e-400", "1e99999999999999999999"] {
        check_a(r#"{"type":"integer"}"#, odd, odd, &["!a"]);
    }
}

#[test]
fn values_inside_strings() {
    check_a(r#"{"type":"number"}"#, r#""3""#, "3", &["~a"]);
    check_a(r#"{"type":"number"}"#, r#"" -3.50 ""#, "-3.50", &["~a"]);
    check_a(r#"{"type":"integer"}"#, r#""3.0""#, "3", &["~a"]);
    check_a(r#"{"type":["integer","string"]}"#, r#""3""#, r#""3""#, &[]);
    check_a(r#"{"type":"boolean"}"#, r#""True""#, "true", &["~a"]);
    check_a(r#"{"type":"boolean"}"#, r#""yes""#, r#""yes""#, &["!a"]);
    check_a(r#"{"type":"object"}"#, r#""{\"b\":1}""#, r#"{"b":1}"#, &["~a"]);
    check_a(
        r#"{"type":"array","items":{"type":"integer"}}"#,
        r#""[1.0, \"2\"]""#,
        "[1, 2]",
        &["~a", "~a[0]", "~a[1]"],
    );
    check_a(r#"{"type":"object"}"#, r#""{broken""#, r#""{broken""#, &["!a"]);
    check_a(r#"{"type":"object"}"#, r#""[]""#, r#""[]""#, &["!a"]);
    check_a(r#"{"type":"integer","maximum":5}"#, r#""9""#, "9", &["~a", "!a"]);
    for odd in ["\"0x10\"", "\"03\"", "\"+3\"", "\"\"", "\"null\""] {
        check_a(r#"{"type":"integer"}"#, odd, odd, &["!a"]);
    }
}

#[test]
fn a_lone_value_is_no_array() {
    check_a(r#"{"type":"array","items":{"type":"string"}}"#, r#""x""#, r#""x""#, &["!a"]);
    check_a(r#"{"type":"string"}"#, "3", "3", &["!a"]);
}

#[test]
fn enums() {
    let words = r#"{"type":"string","enum":["pending","In_Progress","in_progress","done"]}"#;
    check_a(words, r#""PENDING""#, r#""pending""#, &["~a"]);
    check_a(words, r#""IN_PROGRESS""#, r#""IN_PROGRESS""#, &["!a"]);
    check_a(words, r#""other""#, r#""other""#, &["!a"]);
    check_a(r#"{"const":"Yes"}"#, r#""yes""#, r#""Yes""#, &["~a"]);
    check_a(r#"{"type":"STRING","enum":["a"],"nullable":true}"#, "null", "null", &[]);
    check_a(r#"{"enum":[{"x":1,"y":[2]}]}"#, r#"{"y":[2], "x":1}"#, r#"{"y":[2], "x":1}"#, &[]);
}

#[test]
fn a15_numeric_enums_come_back_as_numbers() {
    check_a(r#"{"type":"integer","enum":[1,2,3]}"#, r#""3""#, "3", &["~a"]);
    check_a(r#"{"enum":[1,2,3]}"#, r#""3""#, "3", &["~a"]);
    check_a(r#"{"enum":[true,"x"]}"#, r#""true""#, "true", &["~a"]);
    check_a(r#"{"enum":[3,"3"]}"#, r#""3""#, r#""3""#, &[]);
    check_a(r#"{"enum":[1.0]}"#, "1", "1", &[]);
}

#[test]
fn a14_required_defaults_are_filled() {
    let schema = r##"{"type":"object","required":["b","c","d"],"properties":{"a":{},"b":{"type":"integer","default":7},"c":{"$ref":"#/$defs/c"},"d":{"type":"string"}},"$defs":{"c":{"type":"string","default":"x"}}}"##;
    check(schema, r#"{"d":"y"}"#, r#"{"d":"y","b":7,"c":"x"}"#, &["~b", "~c"]);
    check(schema, "{ }", r#"{"b":7,"c":"x" }"#, &["~b", "~c", "!d"]);
    let unfit = r#"{"required":["b"],"properties":{"b":{"type":"string","default":null}}}"#;
    check(unfit, "{}", "{}", &["!b"]);
    let optional = r#"{"properties":{"b":{"default":1}}}"#;
    check(optional, "{}", "{}", &[]);
}

#[test]
fn null_means_absent_for_what_is_optional() {
    let schema = r#"{"type":"object","required":["r","k"],"properties":{"a":{"type":"string"},"b":{"type":"integer"},"r":{"type":"string"},"k":{"type":"string","default":"K"}}}"#;
    check(
        schema,
        r#"{"a":null, "r":"x","b" : null,"k":"k"}"#,
        r#"{"r":"x","k":"k"}"#,
        &["~a", "~b"],
    );
    check(
        schema,
        r#"{"r":"x","k":"k" , "a":null,"b":null }"#,
        r#"{"r":"x","k":"k" }"#,
        &["~a", "~b"],
    );
    check(schema, r#"{"r":"x","a":null}"#, r#"{"r":"x","k":"K"}"#, &["~a", "~k"]);
    check(schema, r#"{"r":null,"k":"k"}"#, r#"{"r":null,"k":"k"}"#, &["!r"]);
    let all = r#"{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}"#;
    check(all, r#"{ "a":null,"b":null }"#, "{  }", &["~a", "~b"]);
    check_a(r#"{"type":["string","null"]}"#, "null", "null", &[]);
    check_a(r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, "null", "null", &[]);
}

#[test]
fn nested_places_are_named() {
    let schema = r#"{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","required":["status"],"properties":{"status":{"type":"string","enum":["pending","completed"]},"n":{"type":"integer"}},"additionalProperties":false}}}}"#;
    check(
        schema,
        r#"{"todos":[{"status":"pending"},{"status":"Completed","n":"x","z":1},{}]}"#,
        r#"{"todos":[{"status":"pending"},{"status":"completed","n":"x","z":1},{}]}"#,
        &["~todos[1].status", "!todos[1].n", "!todos[1].z", "!todos[2].status"],
    );
}

#[test]
fn alternatives() {
    let tagged = r#"{"anyOf":[{"type":"object","required":["t"],"properties":{"t":{"const":"a"},"n":{"type":"integer"}}},{"type":"object","required":["t"],"properties":{"t":{"const":"b"},"n":{"type":"string"}}}]}"#;
    check_a(tagged, r#"{"t":"a","n":1.0}"#, r#"{"t":"a","n":1}"#, &["~a.n"]);
    check_a(tagged, r#"{"t":"b","n":"1"}"#, r#"{"t":"b","n":"1"}"#, &[]);
    check_a(tagged, r#"{"t":"c"}"#, r#"{"t":"c"}"#, &["!a"]);
    check_a(r#"{"oneOf":[{"type":"integer"},{"type":"null"}]}"#, r#""3""#, "3", &["~a"]);
    check_a(
        r#"{"anyOf":[{"type":"string","maxLength":2},{"type":"integer"}]}"#,
        r#""123""#,
        r#""123""#,
        &["!a"],
    );
    check_a(r#"{"allOf":[{"type":"integer"},{"minimum":2}]}"#, "3.0", "3", &["~a"]);
    check_a(r#"{"allOf":[{"type":"integer"},{"minimum":2}]}"#, "1", "1", &["!a"]);
}

#[test]
fn bounds() {
    for (schema, good, bad) in [
        (r#"{"minimum":1,"maximum":2.5}"#, "2.5", "3"),
        (r#"{"exclusiveMinimum":1}"#, "1.1", "1"),
        (r#"{"minimum":1,"exclusiveMinimum":true}"#, "2", "1"),
        (r#"{"minLength":"2","maxLength":3}"#, r#""éé""#, r#""é""#),
        (r#"{"minItems":1.0}"#, "[1]", "[]"),
        (r#"{"maxProperties":1}"#, r#"{"x":1}"#, r#"{"x":1,"y":2}"#),
        (
            r#"{"prefixItems":[{"type":"string"},{"type":"integer"}],"items":false}"#,
            r#"["a",1]"#,
            r#"["a"]"#,
        ),
        ("false", "", "1"),
    ] {
        if !good.is_empty() {
            check_a(schema, good, good, &[]);
        }
        if schema.contains("prefixItems") {
            check_a(schema, r#"["a",1,2]"#, r#"["a",1,2]"#, &["!a[2]"]);
        } else {
            check_a(schema, bad, bad, &["!a"]);
        }
    }
}

#[test]
fn odd_schemas_are_no_trouble() {
    for schema in [
        "true",
        "{}",
        "null",
        "[]",
        "\"x\"",
        r#"{"type":"string"}"#,
        r#"{"type":"any"}"#,
        r#"{"type":[]}"#,
        r#"{"properties":[],"required":true,"enum":5,"anyOf":[],"$ref":5}"#,
        r##"{"$ref":"#/nowhere"}"##,
        r#"{"$ref":"https://example.com/x"}"#,
        r##"{"$ref":"#"}"##,
        r#"{"not":{"type":"object"}}"#,
        r#"{"patternProperties":{"^a":{}},"additionalProperties":false}"#,
    ] {
        check(schema, r#"{"a":1}"#, r#"{"a":1}"#, &[]);
    }
    let checker = Checker::new(None);
    assert!(checker.accepts(&raw("{}")));
    assert_eq!(checker.check(raw(r#""{\"a\":1}""#)).args.get(), r#"{"a":1}"#);
    assert_eq!(checker.check(raw("[1]")).losses[0].code, LossCode::ArgumentViolation);
    assert_eq!(checker.check(raw("[1]")).args.get(), "[1]");
}

#[test]
fn references() {
    let schema = r##"{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"},"x":{"$ref":"#/properties/y~1z/items/0"},"y/z":{"items":[{"type":"integer"}]},"w":{"$ref":"#here"}},"$defs":{"node":{"type":"object","properties":{"n":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/node"}}}},"h":{"$anchor":"here","type":"boolean"}}}"##;
    check(
        schema,
        r#"{"tree":{"n":1.0,"kids":[{"n":"2"},{"kids":[{"n":3.0}]}]},"x":"4","w":"true"}"#,
        r#"{"tree":{"n":1,"kids":[{"n":2},{"kids":[{"n":3}]}]},"x":4,"w":true}"#,
        &["~tree.n", "~tree.kids[0].n", "~tree.kids[1].kids[0].n", "~x", "~w"],
    );
    let vertex = r##"{"type":"OBJECT","properties":{"a":{"ref":"#/defs/A"}},"defs":{"A":{"type":"INTEGER"}}}"##;
    check(vertex, r#"{"a":"1"}"#, r#"{"a":1}"#, &["~a"]);
}

#[test]
fn a8_cycles_and_depth_end() {
    let doubled = r##"{"$defs":{"v":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/v"}},{"type":"array","items":{"$ref":"#/$defs/v"}},{"type":"integer"}]}},"properties":{"a":{"$ref":"#/$defs/v"}}}"##;
    let deep = |n: usize| format!(r#"{{"a":{}"x"{}}}"#, "[".repeat(n), "]".repeat(n));
    for depth in [3, 60, 5000] {
        let args = raw(&deep(depth));
        let checked = Checker::new(Some(&raw(doubled))).check(args.clone());
        assert_eq!(checked.args, args);
    }
    for schema in [
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##.to_owned(),
        r##"{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}},"properties":{"a":{"$ref":"#/$defs/a"}}}"##.to_owned(),
        format!("{}1{}", r#"{"properties":{"a":"#.repeat(3000), "}}".repeat(3000)),
        format!("{}true{}", r#"{"not":{"items":"#.repeat(60), "}}".repeat(60)),
    ] {
        check(&schema, r#"{"a":[1]}"#, r#"{"a":[1]}"#, &[]);
    }
}

#[test]
fn five_megabytes_are_no_trouble() {
    let schema = raw(
        r#"{"properties":{"list":{"type":"array","items":{"type":"integer"}},"text":{"type":"string"}}}"#,
    );
    let checker = Checker::new(Some(&schema));
    let list =
        format!(r#"{{"list":[{}1.0],"text":"{}"}}"#, "1,".repeat(1_000_000), "x".repeat(3_000_000));
    let checked = checker.check(raw(&list));
    assert_eq!(checked.losses.len(), 1);
    assert_eq!(checked.losses[0].at, "args.list[1000000]");
    assert_eq!(checked.args.get().len(), list.len() - 2);
    let wrong = format!(r#"{{"list":[{}"x"]}}"#, "\"x\",".repeat(500_000));
    assert_eq!(checker.check(raw(&wrong)).losses.len(), 50);
}
