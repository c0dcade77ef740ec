//! The loop, driven by scripts.
//!
//! A script holds the model's answers, one a line: words, `name(args)` for calls, `!malformed` and
//! `!empty` for spoilt turns. A trace lists the steps that the driver was asked for.

mod stream;

use super::*;
use crate::canon::{
    Answer, Backend, Call, CallInput, Failure, FailureKind, Finish, FinishReason, Issuer, Item,
    Loss, LossCode, Part, ResultPart, Role, Signature, Start, ToolChoice, ToolName, ToolResult,
    Turn, Usage,
};
use crate::json::{Raw, Text};
use crate::upstream::generate_content::{decode_activity, decode_grounding};

const DRIVEN: [&str; 2] = ["add", "weather"];
const CALLERS: [&str; 2] = ["edit", "read"];

fn tools() -> Tools {
    let ours = DRIVEN.map(|name| (ToolName::plain(name), Owner::Driver));
    let theirs = CALLERS.map(|name| (ToolName::plain(name), Owner::Caller));
    ours.into_iter().chain(theirs).collect()
}

fn question() -> Vec<Turn<'static>> {
    vec![Turn { role: Role::User, parts: vec![Part::text(Text::new("question"))] }]
}

fn start(choice: ToolChoice<'static>, options: Options) -> ToolLoop {
    ToolLoop::new(question(), choice, tools(), options)
}

fn signature(value: &'static str) -> Signature<'static> {
    let issuer = Issuer { model: "gemini-3.6-flash".into(), backend: Backend::Developer };
    Signature::new(value, Some(issuer)).unwrap()
}

/// `weather(Paris)` → a call whose id is `<round><place>`, signed where it is the first.
fn call(round: usize, place: usize, text: &str) -> Call<'static> {
    let (name, argument) = text.split_once('(').unwrap();
    let argument = argument.trim_end_matches(')');
    let args = if argument.is_empty() { "{}".into() } else { format!("{{\"in\":\"{argument}\"}}") };
    Call {
        id: format!("tg{round}{place}").into(),
        upstream_id: Some(format!("up{round}{place}").into()),
        tool: ToolName::plain(name.to_owned()),
        input: CallInput::Json(Raw::parse(args).unwrap()),
        signature: (place == 0).then(|| signature("sig")),
    }
}

fn said(round: usize, line: &str) -> Result<Answer, Failure> {
    match line {
        "!malformed" => return Err(Failure::new(FailureKind::MalformedCall, "malformed")),
        "!empty" => return Err(Failure::new(FailureKind::EmptyTurn, "empty")),
        "!overloaded" => return Err(Failure::new(FailureKind::Overloaded, "overloaded")),
        _ => {}
    }
    let mut items = Vec::new();
    let mut calls = 0;
    for word in line.split(' ') {
        if word.contains('(') {
            items.push(Item::Call(call(round, calls, word)));
            calls += 1;
        } else {
            items.push(Item::Text(Text::new(word)));
        }
    }
    let reason = if calls > 0 { FinishReason::ToolCalls } else { FinishReason::Stop };
    let usage = Usage { prompt: Some(100), candidates: Some(10), ..Usage::default() };
    let finish = Finish { reason, usage, ..Finish::default() };
    Ok(Answer { start: Start::default(), items, finish })
}

/// Runs a tool: `weather(Paris)` says `weather Paris`.
fn ran(call: &Call<'static>) -> ToolResult<'static> {
    let CallInput::Json(args) = &call.input else { unreachable!() };
    let argument = args.fields().and_then(|fields| fields.get("in")?.to::<String>());
    let text = format!("{} {}", call.tool, argument.unwrap_or_default());
    call.succeeded(vec![ResultPart::Text(Text::new(text.trim()))])
}

fn names<'a>(calls: impl Iterator<Item = &'a Call<'static>>) -> String {
    calls.map(|call| call.tool.to_string()).collect::<Vec<_>>().join(",")
}

fn choice(choice: &ToolChoice<'_>) -> String {
    match choice {
        ToolChoice::Unset => "unset".into(),
        ToolChoice::Auto => "auto".into(),
        ToolChoice::Any => "any".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::One(name) => format!("one:{name}"),
        ToolChoice::Allowed { required, names } => {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            format!("{}:{}", if *required { "must" } else { "may" }, names.join(","))
        }
    }
}

/// Drives the loop to its end. Returns a trace of its steps.
fn trace(run: &mut ToolLoop, script: &[&str]) -> String {
    let mut script = script.iter();
    let mut trace = Vec::new();
    loop {
        let line = match run.step() {
            Step::Generate(request) => {
                let asked = format!("ask {}", choice(request.tool_choice));
                let line = script.next().expect("the script is too short");
                match said(request.round as usize, line) {
                    Ok(answer) => run.answer(answer).unwrap(),
                    Err(failure) => run.fail(failure).unwrap(),
                }
                asked
            }
            Step::RunTools(calls) => {
                let line = format!("run {}", names(calls.iter()));
                // In reverse, as tools that run at once may end.
                let results = calls.iter().rev().map(ran).collect();
                run.results(results).unwrap();
                line
            }
            Step::Done(outcome) => {
                trace.push(match &outcome.end {
                    End::Answered(answer) => format!("answered {}", answer.text()),
                    End::Calls { answer, why, paused } => {
                        assert_eq!(names(answer.calls()), names(paused.calls()));
                        let why = match why {
                            Unfinished::Caller => "caller",
                            Unfinished::Limit => "limit",
                        };
                        format!("{why} {}", names(paused.calls()))
                    }
                    End::Failed(failure) => format!("failed {:?}", failure.kind),
                    End::Cancelled => "cancelled".into(),
                });
                assert_eq!(script.len(), 0, "the script is too long");
                return trace.join("; ");
            }
        };
        trace.push(line);
    }
}

fn outcome(run: &ToolLoop) -> &Outcome {
    match run.step() {
        Step::Done(outcome) => outcome,
        Step::Generate(_) | Step::RunTools(_) => panic!("not done"),
    }
}

/// One line a turn.
fn shown(turns: &[Turn<'_>]) -> Vec<String> {
    turns
        .iter()
        .map(|turn| {
            let parts: Vec<_> = turn.parts.iter().map(part).collect();
            format!("{:?}: {}", turn.role, parts.join(" | ")).to_lowercase()
        })
        .collect()
}

fn part(part: &Part<'_>) -> String {
    let star = |signature: &Option<Signature<'_>>| if signature.is_some() { "*" } else { "" };
    match part {
        Part::Text { text, signature } => format!("'{}'{}", text.decode(), star(signature)),
        Part::Thought { text, signature } => {
            format!("thought '{}'{}", text.decode(), star(signature))
        }
        Part::Call(call) => format!("{}#{}{}", call.tool, call.id, star(&call.signature)),
        Part::Result(result) => {
            let said: Vec<_> = result
                .content
                .iter()
                .map(|part| match part {
                    ResultPart::Text(text) => text.decode().into_owned(),
                    ResultPart::Json(raw) => raw.get().to_owned(),
                    ResultPart::Media(_) => "media".into(),
                })
                .collect();
            let id = result.call_id.as_deref().unwrap_or("-");
            let error = if result.is_error { "error " } else { "" };
            format!("={id} {error}{}", said.join("+"))
        }
        Part::Media(_) => "media".into(),
        Part::Sealed(_) => "sealed".into(),
        Part::Gemini(raw) => raw.get().to_owned(),
    }
}

#[track_caller]
fn check(options: Options, script: &[&str], want: &str) {
    let mut run = start(ToolChoice::Auto, options);
    assert_eq!(trace(&mut run, script), want, "{options:?} {script:?}");
}

fn rounds(max_rounds: u32) -> Options {
    Options { max_rounds, ..Options::default() }
}

fn last_answer(max_rounds: u32) -> Options {
    Options { max_rounds, at_limit: AtLimit::LastAnswer, ..Options::default() }
}

#[test]
fn r069_an_answer_without_calls_is_returned_as_it_is() {
    check(Options::default(), &["hello"], "ask auto; answered hello");
}

#[test]
fn r073_rounds_go_on_while_there_are_calls() {
    check(
        Options::default(),
        &["weather(Paris)", "add(1) add(2)", "done"],
        "ask auto; run weather; ask auto; run add,add; ask auto; answered done",
    );
}

/// As google-genai has it: N requests allow N - 1 rounds of tools; 0 switches it off.
#[test]
fn r073_the_budget_counts_requests() {
    assert_eq!(Options::default().max_rounds, 10);
    for off in [0, 1] {
        check(rounds(off), &["hello"], "ask auto; answered hello");
        check(rounds(off), &["add(1)"], "ask auto; limit add");
    }
    check(rounds(2), &["add(1)", "done"], "ask auto; run add; ask auto; answered done");
    check(rounds(2), &["add(1)", "add(2)"], "ask auto; run add; ask auto; limit add");
    let ten: Vec<_> = std::iter::repeat_n("add(1)", 10).collect();
    let want = "ask auto; run add; ".repeat(9) + "ask auto; limit add";
    check(Options::default(), &ten, &want);
}

#[test]
fn r073_at_the_limit_one_last_answer_may_be_asked_for() {
    check(last_answer(0), &["add(1)"], "ask auto; limit add");
    check(last_answer(1), &["add(1)", "done"], "ask auto; run add; ask none; answered done");
    check(
        last_answer(2),
        &["add(1)", "add(2)", "done"],
        "ask auto; run add; ask auto; run add; ask none; answered done",
    );
    // A model that calls all the same is not obeyed.
    check(last_answer(1), &["add(1)", "add(2)"], "ask auto; run add; ask none; limit add");
    // The caller's calls end the loop before the limit does.
    check(last_answer(1), &["add(1) read(a)"], "ask auto; run add; caller read");
}

#[test]
fn r021_only_the_first_round_is_forced() {
    let one = ToolChoice::One(ToolName::plain("add"));
    let names = vec![ToolName::plain("add"), ToolName::plain("weather")];
    for (choice, first, later) in [
        (ToolChoice::Any, "any", "auto"),
        (one, "one:add", "auto"),
        (
            ToolChoice::Allowed { required: true, names: names.clone() },
            "must:add,weather",
            "may:add,weather",
        ),
        (ToolChoice::Allowed { required: false, names }, "may:add,weather", "may:add,weather"),
        (ToolChoice::Auto, "auto", "auto"),
        (ToolChoice::Unset, "unset", "unset"),
    ] {
        let mut run = start(choice, Options::default());
        assert_eq!(
            trace(&mut run, &["!malformed", "add(1)", "add(2)", "done"]),
            format!(
                "ask {first}; ask {first}; run add; ask {later}; run add; ask {later}; answered done"
            )
        );
    }
}

#[test]
fn r072_both_turns_join_the_history() {
    let mut run = start(ToolChoice::Auto, Options::default());
    trace(&mut run, &["I'll look: weather(Paris) weather(Rome)", "done"]);
    assert_eq!(
        shown(&outcome(&run).turns),
        [
            "model: 'i'll' | 'look:' | weather#tg10* | weather#tg11",
            "user: =tg10 weather paris | =tg11 weather rome",
            "model: 'done'",
        ]
    );
}

#[test]
fn r046_each_request_holds_the_whole_history() {
    let mut run = start(ToolChoice::Auto, Options::default());
    run.answer(said(1, "add(1)").unwrap()).unwrap();
    let Step::RunTools(calls) = run.step() else { panic!() };
    let results = calls.iter().map(ran).collect();
    run.results(results).unwrap();
    let Step::Generate(request) = run.step() else { panic!() };
    assert_eq!(shown(request.turns), ["user: 'question'", "model: add#tg10*", "user: =tg10 add 1"]);
    assert_eq!((request.round, request.last), (2, false));
}

/// The rows of google-genai's history table.
#[test]
fn r072_history_holds_complete_rounds_only() {
    for (options, script, want) in [
        (rounds(10), &["hello"][..], 1),
        (rounds(1), &["add(1)"], 0),
        (rounds(2), &["add(1)", "add(1)"], 2),
        (rounds(3), &["add(1)", "add(1)", "done"], 5),
        (rounds(10), &["add(1)", "!overloaded"], 2),
        (rounds(10), &["add(1) read(a)"], 0),
    ] {
        let mut run = start(ToolChoice::Auto, options);
        trace(&mut run, script);
        assert_eq!(outcome(&run).turns.len(), want, "{script:?}");
    }
}

#[test]
fn r055_results_stand_in_call_order_with_their_ids() {
    let mut run = start(ToolChoice::Auto, Options::default());
    run.answer(said(1, "add(1) weather(Rome) add(2)").unwrap()).unwrap();
    let answer = |id: Option<&'static str>, tool: Option<&'static str>, text: &str| ToolResult {
        call_id: id.map(Into::into),
        tool: tool.map(ToolName::plain),
        is_error: false,
        content: vec![ResultPart::Text(Text::new(text))],
        modifiers: vec![],
    };
    // By the client's id, by name, by place; one too many.
    run.results(vec![
        answer(None, None, "c"),
        answer(Some("toolu_tg11"), None, "b"),
        answer(None, Some("add"), "a"),
        answer(Some("call_tg99"), None, "x"),
    ])
    .unwrap();
    let Step::Generate(request) = run.step() else { panic!() };
    let turn = shown(request.turns).pop().unwrap();
    assert_eq!(turn, "user: =tg10 c | =tg11 b | =tg12 a");
    run.answer(said(2, "done").unwrap()).unwrap();
    let codes: Vec<_> = outcome(&run).losses.iter().map(|loss| loss.code).collect();
    assert_eq!(codes, [LossCode::OrphanResult]);
}

#[test]
fn r071_a_failed_or_missing_result_reaches_the_model_as_an_error() {
    let mut run = start(ToolChoice::Auto, Options::default());
    run.answer(said(1, "add(1) add(2)").unwrap()).unwrap();
    let Step::RunTools(calls) = run.step() else { panic!() };
    let results = vec![calls[0].failed("out of paper")];
    run.results(results).unwrap();
    let Step::Generate(request) = run.step() else { panic!() };
    assert_eq!(
        shown(request.turns).pop().unwrap(),
        "user: =tg10 error out of paper | =tg11 error no result was given for this call"
    );
}

#[test]
fn r130_an_unknown_tool_is_answered_with_the_names_there_are() {
    let mut run = start(ToolChoice::Auto, Options::default());
    assert_eq!(
        trace(&mut run, &["add(1) nope(x)", "nope(x)", "done"]),
        "ask auto; run add; ask auto; ask auto; answered done"
    );
    let turns = shown(&outcome(&run).turns);
    let told = "there is no tool `nope`; the tools are `add`, `edit`, `read`, `weather`";
    assert_eq!(turns[1], format!("user: =tg10 add 1 | =tg11 error {told}"));
    assert_eq!(turns[3], format!("user: =tg20 error {told}"));
    let losses: Vec<_> = outcome(&run).losses.iter().map(|loss| loss.code).collect();
    assert_eq!(losses, [LossCode::UnknownTool]);
}

#[test]
fn r130_an_unknown_tool_may_be_the_callers() {
    let unknown_tools = OnFault::Pass;
    let options = Options { unknown_tools, ..Options::default() };
    check(options, &["add(1) nope(x)"], "ask auto; run add; caller nope");
    let unknown_tools = OnFault::Answer { rounds: 1 };
    let options = Options { unknown_tools, ..Options::default() };
    check(options, &["nope(x)", "nope(y)"], "ask auto; ask auto; caller nope");
}

#[test]
fn r130_the_list_of_names_is_bounded() {
    let many = (0..5_000).map(|n| (ToolName::plain(format!("tool_number_{n}")), Owner::Driver));
    let mut run = ToolLoop::new(vec![], ToolChoice::Auto, many.collect(), Options::default());
    let long = format!("{}(x)", "é".repeat(100_000));
    run.answer(said(1, &long).unwrap()).unwrap();
    let Step::Generate(request) = run.step() else { panic!() };
    let told = shown(&request.turns[1..]).pop().unwrap();
    assert!(told.len() < 3_000, "{}", told.len());
    assert!(told.contains("more"), "{told}");
}

fn violation(at: &str) -> Loss {
    Loss {
        at: at.into(),
        code: LossCode::ArgumentViolation,
        detail: "a number is wanted".into(),
        tool: None,
    }
}

#[test]
fn r131_bad_arguments_are_passed_on_or_answered() {
    let with = |line: &str, round: usize, at: &str| {
        let mut answer = said(round, line).unwrap();
        answer.finish.losses.push(violation(at));
        answer
    };
    let mut run = start(ToolChoice::Auto, Options::default());
    run.answer(with("read(1)", 1, "calls[0].args.in")).unwrap();
    assert!(matches!(&outcome(&run).end, End::Calls { .. }));

    let bad_arguments = OnFault::Answer { rounds: 1 };
    let options = Options { bad_arguments, ..Options::default() };
    let mut run = start(ToolChoice::Auto, options);
    // Only the second call is at fault: it is answered, and the first runs.
    run.answer(with("add(1) read(1)", 1, "calls[1].args.in")).unwrap();
    let Step::RunTools(calls) = run.step() else { panic!() };
    assert_eq!(names(calls.iter()), "add");
    let results = calls.iter().map(ran).collect();
    run.results(results).unwrap();
    let Step::Generate(request) = run.step() else { panic!() };
    assert_eq!(
        shown(request.turns).pop().unwrap(),
        "user: =tg10 add 1 | =tg11 error the arguments do not fit the tool's schema: \
         a number is wanted (calls[1].args.in)"
    );
    // Once is enough: then the tool's owner must deal with it.
    run.answer(with("read(1)", 2, "calls[0]")).unwrap();
    let End::Calls { paused, .. } = &outcome(&run).end else { panic!() };
    assert_eq!(names(paused.calls()), "read");
    // `calls[1]` is not `calls[11]`.
    let mut run = start(ToolChoice::Auto, options);
    run.answer(with("add(1) add(2)", 1, "calls[11].args")).unwrap();
    assert!(matches!(run.step(), Step::RunTools(calls) if calls.len() == 2));
}

#[test]
fn r135_spoilt_turns_are_asked_for_again_within_bounds() {
    let options = Options::default();
    check(
        options,
        &["!malformed", "!empty", "done"],
        "ask auto; ask auto; ask auto; answered done",
    );
    check(
        options,
        &["!malformed", "add(1)", "!empty", "!malformed"],
        "ask auto; ask auto; run add; ask auto; ask auto; failed MalformedCall",
    );
    check(options, &["!overloaded"], "ask auto; failed Overloaded");
    let never = Options { retries: 0, ..options };
    check(never, &["!empty"], "ask auto; failed EmptyTurn");
    // A retry is not a round.
    check(rounds(1), &["!malformed", "add(1)"], "ask auto; ask auto; limit add");
}

#[test]
fn r135_a_failure_may_be_final() {
    let mut run = start(ToolChoice::Auto, Options::default());
    run.abort(Failure::new(FailureKind::MalformedCall, "seen already")).unwrap();
    assert!(
        matches!(&outcome(&run).end, End::Failed(failure) if failure.message == "seen already")
    );
}

#[test]
fn mixed_turns_show_the_caller_only_its_own_calls() {
    let mut run = start(ToolChoice::Any, Options::default());
    assert_eq!(
        trace(&mut run, &["add(0)", "look: weather(Rome) read(a) add(1) edit(b)"]),
        "ask any; run add; ask auto; run weather,add; caller read,edit"
    );
    let End::Calls { answer, paused, .. } = &outcome(&run).end else { panic!() };
    assert_eq!(answer.text(), "look:");
    assert_eq!(answer.finish.reason, FinishReason::ToolCalls);
    assert_eq!(paused.results.len(), 2);

    // The caller answers in an order of its own, with its dialect's ids, and forgets one.
    let given = ToolResult {
        call_id: Some("toolu_tg23".into()),
        tool: None,
        is_error: false,
        content: vec![ResultPart::Text(Text::new("edited"))],
        modifiers: vec![],
    };
    let resumed = paused.clone().resume(vec![given.clone()]);
    let turns = [
        "model: 'look:' | weather#tg20* | read#tg21 | add#tg22 | edit#tg23",
        "user: =tg20 weather rome | =tg21 error no result was given for this call | =tg22 add 1 \
         | =tg23 edited",
    ];
    assert_eq!(shown(&resumed.turns), turns);
    let codes: Vec<_> = resumed.losses.iter().map(|loss| loss.code).collect();
    assert_eq!(codes, [LossCode::MissingResult]);

    run.resume(vec![given]).unwrap();
    assert_eq!(trace(&mut run, &["done"]), "ask auto; answered done");
    let done = outcome(&run);
    assert_eq!(shown(&done.turns)[..2], turns);
    assert_eq!((done.turns.len(), done.requests), (3, 1));
}

#[test]
fn the_limit_returns_every_call_and_can_be_resumed() {
    let mut run = start(ToolChoice::Auto, rounds(1));
    assert_eq!(trace(&mut run, &["add(1) read(a)"]), "ask auto; limit add,read");
    let End::Calls { paused, .. } = &outcome(&run).end else { panic!() };
    let results = paused.calls().map(ran).collect();
    run.resume(results).unwrap();
    assert_eq!(trace(&mut run, &["done"]), "ask auto; answered done");
    assert_eq!(shown(&outcome(&run).turns)[1], "user: =tg10 add 1 | =tg11 read a");
}

#[test]
fn cancelling_keeps_the_history_whole() {
    let mut run = start(ToolChoice::Auto, Options::default());
    run.answer(said(1, "add(1)").unwrap()).unwrap();
    run.cancel();
    assert!(matches!(&outcome(&run).end, End::Cancelled));
    assert!(outcome(&run).turns.is_empty());
    // Input after the end is refused.
    let error = run.results(vec![]).unwrap_err();
    assert_eq!(error.to_string(), "the loop waits for nothing, not for results");
    assert!(run.resume(vec![]).is_err());
}

#[test]
fn steps_out_of_turn_change_nothing() {
    let mut run = start(ToolChoice::Auto, Options::default());
    assert!(run.results(vec![]).is_err());
    assert!(run.resume(vec![]).is_err());
    run.answer(said(1, "add(1)").unwrap()).unwrap();
    let error = run.answer(said(1, "add(1)").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "the loop waits for results, not for an answer");
    assert!(run.fail(Failure::new(FailureKind::Cut, "cut")).is_err());
    assert!(matches!(run.step(), Step::RunTools(calls) if calls.len() == 1));
}

#[test]
fn a_blocked_answer_runs_nothing() {
    let mut run = start(ToolChoice::Auto, Options::default());
    let mut answer = said(1, "well add(1)").unwrap();
    answer.finish.reason = FinishReason::Blocked("SAFETY".into());
    run.answer(answer).unwrap();
    let End::Answered(answer) = &outcome(&run).end else { panic!() };
    assert!(!answer.has_calls());
    assert_eq!(shown(&outcome(&run).turns), ["model: 'well'"]);
}

#[test]
fn r074_steps_are_hidden_or_shown() {
    for (steps, want) in [(Steps::Hidden, "done"), (Steps::Shown, "let'ssoondone")] {
        let mut run = start(ToolChoice::Auto, Options { steps, ..Options::default() });
        trace(&mut run, &["let's add(1)", "soon add(2)", "done"]);
        let End::Answered(answer) = &outcome(&run).end else { panic!() };
        assert_eq!(answer.text(), want);
        assert!(!answer.has_calls());
        // Usage of the last round is the length of the conversation; the sum is its cost.
        assert_eq!(answer.finish.usage.prompt, Some(100));
        assert_eq!(outcome(&run).usage.prompt, Some(300));
        assert_eq!(outcome(&run).usage.cached, None);
        assert_eq!(outcome(&run).requests, 3);
    }
}

fn sig(thought: bool, len: usize) -> Item {
    Item::Signature { thought, len, signature: signature("s") }
}

#[test]
fn c6_an_answer_becomes_the_turn_that_gemini_sent() {
    let text = |text: &str| Item::Text(Text::new(text));
    let thought = |text: &str| Item::Thought(Text::new(text));
    let server = |issuer: Option<Issuer>| {
        let part = Raw::parse(r#"{"toolcall":{}}"#.into()).unwrap();
        Item::Server(decode_activity("toolCall".into(), Raw::empty_object(), part, issuer))
    };
    let issuer = signature("s").issuer().cloned();
    let a_call = || Item::Call(call(1, 0, "add(1)"));
    let rows: [(Vec<Item>, &str); 14] = [
        (vec![], ""),
        (vec![text("ab")], "'ab'"),
        (vec![text("ab"), sig(false, 2)], "'ab'*"),
        (vec![text("ab"), sig(false, 1)], "'a' | 'b'*"),
        (vec![text("ab"), sig(false, 0)], "'ab' | ''*"),
        (vec![text("aé\n"), sig(false, 3)], "'a' | 'é\n'*"),
        // More than there is, or half a character: never lose the signature.
        (vec![text("ab"), sig(false, 9)], "'ab'*"),
        (vec![text("aé"), sig(false, 1)], "'a' | 'é'*"),
        (
            vec![text("a"), sig(false, 1), text("b"), sig(false, 0), sig(false, 0)],
            "'a'* | 'b' | ''* | ''*",
        ),
        (vec![thought("hm"), text("a")], "'a'"),
        (vec![thought("hmm"), sig(true, 1), text("a")], "thought 'm'* | 'a'"),
        (vec![text("a"), sig(true, 0), a_call()], "'a' | thought ''* | add#tg10*"),
        (
            vec![a_call(), text("a"), server(None), server(issuer), sig(false, 0)],
            "add#tg10* | 'a' | {\"toolcall\":{}} | sealed | ''*",
        ),
        (
            vec![text("a"), Item::Grounding(decode_grounding(Raw::empty_object())), text("b")],
            "'a' | 'b'",
        ),
    ];
    for (items, want) in rows {
        let answer = Answer { items: items.clone(), ..Answer::default() };
        let turn = answer.to_turn();
        assert_eq!(shown(&[turn]), [format!("model: {want}")], "{items:?}");
    }
}
