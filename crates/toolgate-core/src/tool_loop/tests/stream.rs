//! Several rounds as one stream.

use proptest::prelude::*;

use super::*;
use crate::canon::{Assembler, Event, Grammar, Sink};

/// Events that the caller sees, checked against the grammar.
#[derive(Default)]
struct Seen {
    grammar: Grammar,
    whole: Assembler,
    words: Vec<String>,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event<'_>) {
        self.grammar.feed(event).unwrap();
        self.whole.event(event);
        match event {
            Event::Text(text) => self.words.push(text.decode().into_owned()),
            Event::Call(call) => self.words.push(call.tool.to_string()),
            Event::Finish(_) => self.words.push("end".into()),
            Event::Fail(failure) => self.words.push(format!("{:?}", failure.kind)),
            Event::Start(_)
            | Event::Thought(_)
            | Event::Signature { .. }
            | Event::Media(_)
            | Event::Server(_)
            | Event::Grounding(_) => {}
        }
    }
}

fn events(round: usize, line: &str) -> Vec<Event<'static>> {
    let answer = match said(round, line) {
        Ok(answer) => answer,
        Err(failure) => return vec![Event::Start(Start::default()), Event::Fail(failure)],
    };
    let mut events = vec![Event::Start(answer.start)];
    events.extend(answer.items.into_iter().map(|item| match item {
        Item::Text(text) => Event::Text(text),
        Item::Call(call) => Event::Call(call),
        Item::Thought(_)
        | Item::Signature { .. }
        | Item::Media(_)
        | Item::Server(_)
        | Item::Grounding(_) => unreachable!("scripts hold words and calls"),
    }));
    events.push(Event::Finish(answer.finish));
    events
}

/// Drives a streamed loop. `/` is the end of a round: what stands before it came at once.
#[track_caller]
fn check(options: Options, script: &[&str], want: &str) {
    assert_eq!(streamed(options, script).0, want, "{options:?}");
}

/// Events that the caller saw, and the end of the loop.
#[track_caller]
fn streamed(options: Options, script: &[&str]) -> (String, Outcome) {
    let mut run = start(ToolChoice::Auto, options);
    let mut relay = Relay::new(&run);
    let mut seen = Seen::default();
    let mut script = script.iter();
    loop {
        match run.step() {
            Step::Generate(request) => {
                let line = script.next().expect("the script is too short");
                for event in events(request.round as usize, line) {
                    relay.feed(&event, &mut seen);
                }
                match relay.round() {
                    Ok(answer) => run.answer(answer).unwrap(),
                    Err(failure) if relay.is_committed() => run.abort(failure).unwrap(),
                    Err(failure) => run.fail(failure).unwrap(),
                }
                seen.words.push("/".into());
            }
            Step::RunTools(calls) => {
                let results = calls.iter().map(ran).collect();
                run.results(results).unwrap();
            }
            Step::Done(_) => break,
        }
        relay.settle(&run, &mut seen);
    }
    seen.grammar.finish().unwrap();
    if let End::Answered(answer) | End::Calls { answer, .. } = &outcome(&run).end {
        let streamed = seen.whole.finish().unwrap();
        assert_eq!(streamed.text(), answer.text());
        assert_eq!(names(streamed.calls()), names(answer.calls()));
        assert_eq!(streamed.finish, answer.finish);
    }
    (seen.words.join(" "), run.into_outcome().unwrap())
}

#[test]
fn r075_rounds_stream_as_one_answer() {
    let hidden = Options::default();
    let shown = Options { steps: Steps::Shown, ..hidden };
    check(shown, &["hello"], "hello / end");
    check(hidden, &["hello"], "/ hello end");
    check(shown, &["let's add(1) then", "done"], "let's / then done / end");
    check(hidden, &["let's add(1) then", "done"], "/ / done end");
    // What follows a call waits until it is clear whose call it is.
    check(shown, &["a read(x) b add(1) c"], "a / read b c end");
    check(hidden, &["a read(x) b add(1) c"], "/ a read b c end");
    // After the limit nothing is hidden any more.
    check(last_answer(1), &["add(1)", "done"], "/ done / end");
}

#[test]
fn r135_spoilt_rounds_leave_no_trace_in_a_stream() {
    let hidden = Options::default();
    let shown = Options { steps: Steps::Shown, ..hidden };
    check(shown, &["add(1)", "!malformed", "done"], "/ / done / end");
    check(hidden, &["!empty", "add(1)", "!overloaded"], "/ / / Overloaded");
}

#[test]
fn r135_what_the_caller_has_seen_is_not_asked_for_again() {
    let shown = Options { steps: Steps::Shown, ..Options::default() };
    let mut run = start(ToolChoice::Auto, shown);
    let mut relay = Relay::new(&run);
    let mut seen = Seen::default();
    relay.feed(&Event::Start(Start::default()), &mut seen);
    assert!(!relay.is_committed());
    relay.feed(&Event::Text(Text::new("half")), &mut seen);
    assert!(relay.is_committed());
    run.abort(relay.round().unwrap_err()).unwrap();
    relay.settle(&run, &mut seen);
    seen.grammar.finish().unwrap();
    assert_eq!(seen.words, ["half", "Cut"]);
}

fn any_fault() -> impl Strategy<Value = OnFault> {
    prop_oneof![Just(OnFault::Pass), (0..3_u32).prop_map(|rounds| OnFault::Answer { rounds })]
}

fn any_options() -> impl Strategy<Value = Options> {
    let at_limit = prop_oneof![Just(AtLimit::LastAnswer), Just(AtLimit::ReturnCalls)];
    let steps = prop_oneof![Just(Steps::Hidden), Just(Steps::Shown)];
    (0..5_u32, at_limit, 0..3_u32, steps, any_fault()).prop_map(
        |(max_rounds, at_limit, retries, steps, unknown_tools)| Options {
            max_rounds,
            at_limit,
            retries,
            steps,
            unknown_tools,
            bad_arguments: OnFault::Pass,
        },
    )
}

proptest! {
    /// Whatever the model says: the stream follows the grammar, the loop ends within its bounds,
    /// and every call in the history has its result, in order.
    #[test]
    fn any_script_ends_with_a_whole_history(
        options in any_options(),
        lines in prop::collection::vec(
            "!malformed|!empty|(word|add\\(1\\)|read\\(a\\)|nope\\(b\\)|weather\\(c\\))\
             ( word| add\\(1\\)| read\\(a\\)| nope\\(b\\)){0,3}",
            16,
        ),
    ) {
        let script: Vec<_> = lines.iter().map(String::as_str).collect();
        let (_, outcome) = streamed(options, &script);
        prop_assert!(outcome.requests <= options.max_rounds.max(1) + options.retries + 1);
        for (turn, next) in outcome.turns.iter().zip(outcome.turns.iter().skip(1)) {
            let calls = turn.parts.iter().filter_map(|part| {
                if let Part::Call(call) = part { Some(&call.id) } else { None }
            });
            let results = next.parts.iter().filter_map(|part| {
                if let Part::Result(result) = part { result.call_id.as_ref() } else { None }
            });
            prop_assert!(calls.eq(results));
        }
        let last = outcome.turns.last().map(|turn| turn.role);
        prop_assert_eq!(last == Some(Role::Model), matches!(outcome.end, End::Answered(_)));
    }
}
