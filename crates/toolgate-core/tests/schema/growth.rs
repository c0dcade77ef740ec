//! Work grows no faster than the schema, whatever it is made of.
//!
//! `cargo test -p toolgate-core --test schema growth -- --nocapture` prints the tables.

use toolgate_core::canon::SchemaForm;
use toolgate_core::json::Raw;
use toolgate_core::schema::report::{Options, check};
use toolgate_core::schema::{Checker, Emit, compile, compile_output};

use crate::adversary::{Family, construct_families, joined, keyword_families};

/// How large the smaller input of a pair is.
const SIZE: usize = 600;
/// Sizes at which every keyword is tried along every dimension.
const KEYWORD_SIZES: [usize; 2] = [100, 400];
/// Work that may be done for a small schema already: references that are written out, and copies.
const ALLOWANCE: usize = 60_000;

/// One line of a table.
struct Row {
    name: String,
    /// By how much the larger input is larger.
    factor: usize,
    work: [usize; 2],
}

impl Row {
    fn is_linear(&self) -> bool {
        let [small, large] = self.work;
        large <= small * self.factor * 11 / 10 + ALLOWANCE
    }

    fn print(&self) -> String {
        let [small, large] = self.work;
        let ratio = large * 100 / small.max(1);
        format!("{small:>9} {large:>9} {:>4}.{:02}  {}", ratio / 100, ratio % 100, self.name)
    }
}

#[track_caller]
fn check_rows(rows: &[Row]) {
    for row in rows {
        println!("{}", row.print());
    }
    let bad: Vec<String> = rows.iter().filter(|row| !row.is_linear()).map(Row::print).collect();
    assert!(bad.is_empty(), "work grows faster than the input:\n{}", bad.join("\n"));
}

fn raw(json: &str) -> Raw<'static> {
    Raw::parse(json.to_owned()).expect("JSON")
}

/// The work for one schema, and how much came of it, for all targets together.
fn work(schema: &str) -> usize {
    let raw = raw(schema);
    let mut work = 0;
    for emit in [Emit::JsonSchema, Emit::ParametersVertex] {
        let compiled = compile(Some(&raw), SchemaForm::JsonSchema, emit);
        assert!(!compiled.is_too_large);
        let losses: usize = compiled.losses.iter().map(|it| it.at.len() + it.detail.len()).sum();
        let note = compiled.note.as_ref().map_or(0, String::len);
        work += compiled.work + (losses + note) / 16;
    }
    work + compile_output(&raw, SchemaForm::JsonSchema, Emit::JsonSchema).work
}

fn rows(families: &[Family], sizes: [usize; 2]) -> Vec<Row> {
    let [small, large] = sizes;
    let row = |family: &Family| {
        let work = sizes.map(|size| work(&(family.schema)(size)));
        let name = format!("{}: {}", family.dimension, family.subject);
        Row { name, factor: large / small, work }
    };
    families.iter().map(row).collect()
}

#[test]
fn doubling_any_construct_at_most_doubles_the_work() {
    check_rows(&rows(&construct_families(), [SIZE, 2 * SIZE]));
}

macro_rules! no_keyword_grows_faster_than_the_schema {
    ($($name:ident $part:literal)*) => {$(
        #[test]
        fn $name() {
            check_rows(&rows(&keyword_families($part), KEYWORD_SIZES));
        }
    )*};
}

no_keyword_grows_faster_than_the_schema! {
    no_keyword_grows_faster_than_the_schema_1 0
    no_keyword_grows_faster_than_the_schema_2 1
    no_keyword_grows_faster_than_the_schema_3 2
    no_keyword_grows_faster_than_the_schema_4 3
}

/// The work of checking arguments, of a size, against a schema, of a size.
fn checking(schema: impl Fn(usize) -> String, args: impl Fn(usize) -> String) -> [usize; 2] {
    [SIZE, 2 * SIZE].map(|size| {
        let checker = Checker::new(Some(&raw(&schema(size))));
        checker.check(raw(&args(size))).work
    })
}

#[test]
fn doubling_arguments_at_most_doubles_the_work_of_checking_them() {
    let property = |schema: String| format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    let any_of = |branch: fn(usize) -> String| {
        move |size: usize| {
            property(format!(
                r#"{{"type":"array","items":{{"anyOf":[{}]}}}}"#,
                joined(size, branch)
            ))
        }
    };
    let items = |size: usize| format!(r#"{{"a":[{}]}}"#, joined(size, |at| at.to_string()));
    let objects =
        |size: usize| format!(r#"{{"a":[{}]}}"#, joined(size, |at| format!(r#"{{"k{at}":null}}"#)));
    let rows = [
        (
            "anyOf of constants, many items",
            checking(any_of(|at| format!(r#"{{"const":"{at}"}}"#)), items),
        ),
        (
            "anyOf of bounds, many items",
            checking(any_of(|at| format!(r#"{{"minimum":{}}}"#, at + 9999)), items),
        ),
        (
            "anyOf of required names, many items",
            checking(any_of(|at| format!(r#"{{"required":["x{at}"]}}"#)), objects),
        ),
        (
            "enum, many items",
            checking(
                |size| {
                    property(format!(
                        r#"{{"type":"array","items":{{"enum":[{}]}}}}"#,
                        joined(size, |at| format!(r#""{at}""#))
                    ))
                },
                items,
            ),
        ),
        (
            "enum of objects, many items",
            checking(
                |size| {
                    property(format!(
                        r#"{{"type":"array","items":{{"enum":[{}]}}}}"#,
                        joined(size, |at| format!(r#"{{"v":{at}}}"#))
                    ))
                },
                objects,
            ),
        ),
        (
            "allOf, many items",
            checking(
                |size| {
                    property(format!(
                        r#"{{"type":"array","items":{{"allOf":[{}]}}}}"#,
                        joined(size, |at| format!(r#"{{"minimum":{at}}}"#))
                    ))
                },
                items,
            ),
        ),
        (
            "required names that miss",
            checking(
                |size| format!(r#"{{"required":[{}]}}"#, joined(size, |at| format!(r#""k{at}""#))),
                |_| "{}".to_owned(),
            ),
        ),
        (
            "nulls that are left out",
            checking(
                |size| {
                    let properties = joined(size, |at| format!(r#""k{at}":{{"type":"string"}}"#));
                    format!(r#"{{"properties":{{{properties}}}}}"#)
                },
                |size| format!("{{{}}}", joined(size, |at| format!(r#""k{at}":null"#))),
            ),
        ),
        (
            "depth",
            checking(
                |_| r##"{"properties":{"a":{"$ref":"#"},"b":{"type":"integer"}}}"##.to_owned(),
                |size| {
                    format!(
                        "{}{{\"b\":\"1\"}}{}",
                        r#"{"a":"#.repeat(size / 20),
                        "}".repeat(size / 20)
                    )
                },
            ),
        ),
    ];
    let rows: Vec<Row> = rows
        .into_iter()
        .map(|(name, work)| Row { name: name.to_owned(), factor: 2, work })
        .collect();
    check_rows(&rows);
}

#[test]
fn arguments_that_take_too_long_are_passed_on_and_reported() {
    let branches = joined(5_000, |at| format!(r#"{{"minimum":{}}}"#, at + 10_000));
    let schema = format!(
        r#"{{"properties":{{"a":{{"items":{{"anyOf":[{branches}]}}}},"b":{{"type":"integer"}}}}}}"#
    );
    let args = format!(r#"{{"a":[{}],"b":"1"}}"#, joined(5_000, |at| at.to_string()));
    let checker = Checker::new(Some(&raw(&schema)));
    let checked = checker.check(raw(&args));
    let losses: Vec<String> =
        checked.losses.iter().map(|loss| format!("{:?} {}", loss.code, loss.at)).collect();
    assert_eq!(losses, ["ArgumentUnchecked args"]);
    assert_eq!(checked.args.get(), args);
}

#[test]
fn doubling_the_tools_of_a_file_at_most_doubles_the_work() {
    let file = |tools: usize, separator: &str, one: &dyn Fn(usize) -> String| {
        let tools: Vec<String> = (0..tools).map(one).collect();
        format!(r#"{{"tools":[{}]}}"#, tools.join(separator))
    };
    let work = |text: &str| check("tools.json", text, &Options::default()).work;
    let plain = |at: usize| {
        format!(r#"{{"name":"t{at}","input_schema":{{"properties":{{"a":{{"const":{at}}}}}}}}}"#)
    };
    let faulty = |at: usize| {
        let properties = joined(20, |at| format!(r#""p{at}":{{"pattern":"x"}}"#));
        format!(r#"{{"name":"t{at}","input_schema":{{"properties":{{{properties}}}}}}}"#)
    };
    let namespace = |size: usize| {
        let tools = joined(size, |at| format!(r#"{{"type":"function","name":"t{at}"}}"#));
        format!(r#"[{{"type":"namespace","name":"{}","tools":[{tools}]}}]"#, "n".repeat(size * 20))
    };
    let row = |name: &str, text: &dyn Fn(usize) -> String| Row {
        name: name.to_owned(),
        factor: 2,
        work: [work(&text(SIZE)), work(&text(2 * SIZE))],
    };
    check_rows(&[
        row("tools on one line", &|size| file(size, ",", &plain)),
        row("tools on lines", &|size| file(size, ",\n", &plain)),
        row("tools with many changes", &|size| file(size, ",", &faulty)),
        row("tools of one name", &|size| file(size, ",", &|_| plain(1))),
        row("tools in a namespace with a long name", &namespace),
    ]);
}
