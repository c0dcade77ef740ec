//! Calls: names, arguments, pieces.

use toolgate_core::canon::{Item, ToolName};
use toolgate_core::upstream::generate_content::{AnswerFunction, ToolEntry, ToolInput};

use toolgate_testing::decoding::{candidate, check, check_with, decode, exchange, stream};

#[test]
fn b4_names_are_mended() {
    let bash =
        |name: &str| format!(r#"{{"functionCall":{{"name":"{name}","args":{{"command":"ls"}}}}}}"#);
    let call = r#"call Bash {"command":"ls"} id - signature -"#;
    check(&[&bash("Bash")], "STOP", &[call, "finish ToolCalls"]);
    for name in
        ["default_api:Bash", "default_api.Bash", "functions.Bash", "bash", "default_api:bash"]
    {
        check(&[&bash(name)], "STOP", &[call, "finish ToolCalls", "NameRepaired calls[0].name"]);
    }
}

#[test]
fn r130_an_undeclared_tool_is_passed_on() {
    check(
        &[r#"{"functionCall":{"name":"Launch","args":{"x":1.0}}}"#],
        "STOP",
        &[
            r#"call Launch {"x":1.0} id - signature -"#,
            "finish ToolCalls",
            "UnknownTool calls[0].name",
        ],
    );
}

#[test]
fn b1_aliases_are_reversed() {
    let mut exchange = exchange();
    exchange.tools.push(ToolEntry {
        alias: "repl_run_1a2b3c4d".into(),
        name: ToolName { namespace: Some("mcp__repl".into()), name: "run/it".into() },
        input: ToolInput::Freeform,
    });
    check_with(
        &exchange,
        &[r#"{"functionCall":{"name":"repl_run_1a2b3c4d","args":{"input":"1+1"}}}"#],
        "STOP",
        &[r#"call mcp__repl.run/it freeform "1+1" id - signature -"#, "finish ToolCalls"],
    );
}

#[test]
fn a15_arguments_are_mended() {
    check(
        &[
            r#"{"functionCall":{"name":"Bash","args":{"command":"ls","timeout":"5","run_in_background":null}}}"#,
        ],
        "STOP",
        &[
            r#"call Bash {"command":"ls","timeout":5} id - signature -"#,
            "finish ToolCalls",
            "ArgumentRepaired calls[0].args.timeout",
            "ArgumentRepaired calls[0].args.run_in_background",
        ],
    );
    check(
        &[r#"{"functionCall":{"name":"Read","args":{"path":"x"}}}"#],
        "STOP",
        &[
            r#"call Read {"path":"x"} id - signature -"#,
            "finish ToolCalls",
            "ArgumentViolation calls[0].args.path",
            "ArgumentViolation calls[0].args.file_path",
        ],
    );
}

#[test]
fn law6_arguments_keep_their_bytes() {
    let args =
        r#"{"z": 1.50,  "a":{"title":"t","$ref":"r","n":12345678901234567890},"é":"\u00e9"}"#;
    let part = format!(r#"{{"functionCall":{{"name":"other","args":{args}}}}}"#);
    let bytes = stream(&[&candidate(&part, "STOP")]);
    let answer = decode(&exchange(), &[&bytes]).answer.finish().unwrap();
    let Some(Item::Call(call)) = answer.items.first() else { panic!() };
    assert_eq!(format!("{:?}", call.input), format!("Json({args})"));
}

#[test]
fn arguments_that_are_no_object() {
    let call = |args: &str| format!(r#"{{"functionCall":{{"name":"Bash","args":{args}}}}}"#);
    check(
        &[&call(r#""{\"command\":\"ls\"}""#)],
        "STOP",
        &[
            r#"call Bash {"command":"ls"} id - signature -"#,
            "finish ToolCalls",
            "ArgumentRepaired calls[0].args",
        ],
    );
    check(
        &[&call("[1]")],
        "STOP",
        &[
            r#"call Bash {"input":[1]} id - signature -"#,
            "finish ToolCalls",
            "ArgumentViolation calls[0].args",
        ],
    );
    check(
        &[&call("null").replace("Bash", "TodoWrite")],
        "STOP",
        &["call TodoWrite {} id - signature -", "finish ToolCalls"],
    );
}

#[test]
fn i2_freeform_tools_get_text() {
    let mut exchange = exchange();
    exchange.tools.push(ToolEntry {
        alias: "apply_patch".into(),
        name: ToolName::plain("apply_patch"),
        input: ToolInput::Freeform,
    });
    for (args, text, losses) in [
        (r#"{"input":"*** Begin Patch\n"}"#, r#""*** Begin Patch\n""#, 0),
        (r#"{"input":"x","content":"y"}"#, r#""x""#, 0),
        (r#"{"content":"*** Begin"}"#, r#""*** Begin""#, 1),
        (r#"{"patch":"*** Begin","strip":1}"#, r#""*** Begin""#, 1),
        (r#""*** Begin""#, r#""*** Begin""#, 1),
        (r#"{"input":{"a": 1}}"#, r#""{\"a\":1}""#, 1),
        (r#"{"a":"x", "b":"y"}"#, r#""{\"a\":\"x\",\"b\":\"y\"}""#, 1),
        ("{}", r#""""#, 0),
    ] {
        let part = format!(r#"{{"functionCall":{{"name":"apply_patch","args":{args}}}}}"#);
        let call = format!("call apply_patch freeform {text} id - signature -");
        let mut want = vec![call.as_str(), "finish ToolCalls"];
        want.extend(std::iter::repeat_n("ArgumentRepaired calls[0].args", losses));
        check_with(&exchange, &[&part], "STOP", &want);
    }
}

#[test]
fn a_structured_answer_is_text() {
    let mut exchange = exchange();
    let name = "final_answer".to_owned();
    exchange.answer_function = Some(AnswerFunction { name: name.clone(), argument: None });
    let call = r#"{"functionCall":{"name":"final_answer","args":{"a": [1, 2.0]}},"thoughtSignature":"c2ln"}"#;
    let unsigned = call.replace(r#","thoughtSignature":"c2ln""#, "");
    check_with(&exchange, &[&unsigned], "STOP", &[r#"text "{\"a\":[1,2.0]}""#, "finish Stop"]);
    check_with(
        &exchange,
        &[&call.replace("final_answer", "default_api:final_answer"), call],
        "STOP",
        &[
            r#"text "{\"a\":[1,2.0]}""#,
            "finish Stop",
            "Ignored answer.thoughtSignature",
            "CallDropped answer",
        ],
    );
    // Words beside it would spoil it; without it they are the answer.
    let words = r#"{"text":"Let me see. "}"#;
    check_with(
        &exchange,
        &[words, &unsigned, words],
        "STOP",
        &[r#"text "{\"a\":[1,2.0]}""#, "finish Stop", "PartDropped text"],
    );
    check_with(
        &exchange,
        &[words, words],
        "STOP",
        &[r#"text "Let me see. Let me see. ""#, "finish Stop"],
    );
    exchange.answer_function = Some(AnswerFunction { name, argument: Some("answer") });
    for (args, text, loss) in [
        (r#"{"answer": [1, 2.0]}"#, r#"text "[1,2.0]""#, None),
        (r#"{"answer": null}"#, r#"text "null""#, None),
        (r#"{"b": 1}"#, r#"text "{\"b\":1}""#, Some("ArgumentRepaired answer")),
    ] {
        let call = format!(r#"{{"functionCall":{{"name":"final_answer","args":{args}}}}}"#);
        let want: Vec<&str> = [text, "finish Stop"].into_iter().chain(loss).collect();
        check_with(&exchange, &[&call], "STOP", &want);
    }
}

#[test]
fn one_call_at_a_time() {
    let mut exchange = exchange();
    exchange.one_call = true;
    let call = |command: &str| {
        format!(r#"{{"functionCall":{{"name":"Bash","args":{{"command":"{command}"}}}}}}"#)
    };
    check_with(
        &exchange,
        &[&call("a"), &call("b"), r#"{"text":"c"}"#, &call("d")],
        "STOP",
        &[
            r#"call Bash {"command":"a"} id - signature -"#,
            r#"text "c""#,
            "finish ToolCalls",
            "CallDropped calls[1]",
            "CallDropped calls[2]",
        ],
    );
}

#[test]
fn d10_a_name_without_arguments_and_arguments_without_a_name() {
    let whole = r#"call Bash {"command":"ls"} id - signature -"#;
    let args = r#"{"functionCall":{"name":"","args":{"command":"ls"}}}"#;
    let name = r#"{"functionCall":{"name":"Bash","args":{}}}"#;
    check(&[name, args, ""], "STOP", &[whole, "finish ToolCalls"]);
    check(&[args, name, r#"{"text":""}"#], "STOP", &[whole, "finish ToolCalls"]);
    check(&[&format!("{name},{args}")], "STOP", &[whole, "finish ToolCalls"]);
    check(
        &[name, args, r#"{"text":"and"}"#, r#"{"functionCall":{"name":"TodoWrite"}}"#],
        "STOP",
        &[whole, r#"text "and""#, "call TodoWrite {} id - signature -", "finish ToolCalls"],
    );
    // With nothing to go on with it is delivered as it is.
    check(
        &[name, name],
        "STOP",
        &[
            "call Bash {} id - signature -",
            "call Bash {} id - signature -",
            "finish ToolCalls",
            "ArgumentViolation calls[0].args.command",
            "ArgumentViolation calls[1].args.command",
        ],
    );
    // Two calls that say their ids are two calls.
    check(
        &[
            r#"{"functionCall":{"name":"","id":"a","args":{"command":"x"}}}"#,
            r#"{"functionCall":{"name":"Bash","id":"b","args":{"command":"y"}}}"#,
        ],
        "STOP",
        &[r#"call Bash {"command":"y"} id b signature -"#, "finish ToolCalls", "CallDropped calls"],
    );
    check(&[args], "STOP", &["fail MalformedCall"]);
    check(&[r#"{"text":"x"},{"functionCall":{}}"#], "STOP", &[r#"text "x""#, "finish Stop"]);
}

#[test]
fn d8_pieces_in_every_form() {
    let whole = r#"call Bash {"command":"git log"} id - signature c2ln"#;
    let open = r#"{"functionCall":{"name":"Bash","willContinue":true},"thoughtSignature":"c2ln"}"#;
    let piece = |text: &str, more: bool, rest: &str| {
        let more = if more { r#","willContinue":true"# } else { "" };
        format!(
            r#"{{"functionCall":{{{rest}"partialArgs":[{{"jsonPath":"$.command","stringValue":"{text}"{more}}}]}}}}"#
        )
    };
    let go_on = r#""willContinue":true,"#;
    // The last piece closes the call by not saying that there is more.
    check(
        &[open, &piece("git ", true, go_on), &piece("log", false, ""), r#"{"text":""}"#],
        "STOP",
        &[whole, "finish ToolCalls"],
    );
    // Every piece repeats the name.
    let named = r#""name":"Bash","willContinue":true,"#;
    check(
        &[open, &piece("git ", true, named), &piece("log", false, r#""name":"Bash","#)],
        "STOP",
        &[whole, "finish ToolCalls"],
    );
    // All in one part.
    check(
        &[
            r#"{"functionCall":{"name":"Bash","partialArgs":[{"jsonPath":"$.command","stringValue":"git log"}]},"thoughtSignature":"c2ln"}"#,
        ],
        "STOP",
        &[whole, "finish ToolCalls"],
    );
    // The next call begins before the first has been closed.
    check(
        &[
            open,
            &piece("git log", true, go_on),
            r#"{"functionCall":{"name":"TodoWrite","willContinue":true}}"#,
            r#"{"functionCall":{}}"#,
        ],
        "STOP",
        &[whole, "call TodoWrite {} id - signature -", "finish ToolCalls"],
    );
    // The same function twice, the first never closed.
    check(
        &[
            open,
            &piece("git log", true, go_on),
            r#"{"functionCall":{"name":"Bash","willContinue":true}}"#,
            &piece("ls", false, ""),
        ],
        "STOP",
        &[whole, r#"call Bash {"command":"ls"} id - signature -"#, "finish ToolCalls"],
    );
    // A path that leads nowhere.
    check(
        &[
            r#"{"functionCall":{"name":"TodoWrite","partialArgs":[{"jsonPath":"$[*]","numberValue":1}]}}"#,
        ],
        "STOP",
        &[
            "call TodoWrite {} id - signature -",
            "finish ToolCalls",
            "ArgumentViolation calls[0].args",
        ],
    );
    // Cut off in the middle.
    check(&[open, &piece("git", true, go_on)], "", &["fail Cut"]);
    check(
        &[open, &piece("git", true, go_on)],
        "SAFETY",
        &[r#"finish Blocked("SAFETY")"#, "CallDropped calls[0]"],
    );
}

#[test]
fn h1_a_call_beside_a_bad_reason() {
    let call = r#"{"functionCall":{"name":"list_files","args":{}}}"#;
    check(&[call], "MALFORMED_FUNCTION_CALL", &["fail MalformedCall"]);
    check(
        &[call],
        "UNEXPECTED_TOOL_CALL",
        &[
            "call list_files {} id - signature -",
            "finish ToolCalls",
            "UnknownTool calls[0].name",
            "UnknownTool finishReason",
        ],
    );
}

#[test]
fn d3_calls_then_an_empty_stop() {
    check(
        &[r#"{"functionCall":{"name":"TodoWrite","args":{}}}"#, r#"{"text":""}"#],
        "STOP",
        &["call TodoWrite {} id - signature -", "finish ToolCalls"],
    );
}

#[test]
fn r29_r87_r113_c4_ids_are_unique_and_carry_geminis_own() {
    let call = r#"{"functionCall":{"name":"TodoWrite","args":{},"id":"gjl2yj5t"}}"#;
    let bytes = stream(&[&candidate(call, ""), &candidate(call, "STOP")]);
    let answer = decode(&exchange(), &[&bytes]).answer.finish().unwrap();
    let ids: Vec<_> = answer.calls().map(|call| call.id.as_ref()).collect();
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| toolgate_core::canon::upstream_id(id) == "gjl2yj5t"), "{ids:?}");
}
