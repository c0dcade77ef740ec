use toolgate_core::canon::Function;
use toolgate_core::upstream::generate_content::{ToolEntry, ToolInput};

use super::*;

fn scope(client: &str, pooled: &str) -> Scope {
    Scope::new(Owner::of(client), &Pass::Pool, Some(&Secret::new(pooled)))
}

fn target() -> Target {
    Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer }
}

fn function(name: &str, description: &str, schema: &str) -> Tool<'static> {
    Tool::Function(Function {
        name: ToolName::plain(name.to_owned()),
        description: Some(Text::new(description)),
        parameters: Raw::parse(schema.to_owned()),
        form: SchemaForm::JsonSchema,
        response: None,
        deferred: false,
        at: String::new(),
        schema_field: "parameters",
    })
}

fn request(tools: Vec<Tool<'static>>) -> Request<'static> {
    Request { tools, ..Request::default() }
}

fn refused_tools(names: &[&str]) -> Learned {
    let tools = names.iter().map(|name| ToolName::plain((*name).to_owned())).collect();
    Learned { tools, ..Learned::default() }
}

fn exchange(tools: &[&str]) -> Exchange {
    let tools = tools.iter().map(|name| ToolEntry {
        alias: (*name).to_owned(),
        name: ToolName::plain((*name).to_owned()),
        input: ToolInput::Freeform,
    });
    Exchange { target: target(), tools: tools.collect(), one_call: false, answer_function: None }
}

fn refusal(message: &str) -> Failure {
    let mut failure = Failure::new(FailureKind::InvalidRequest, message);
    failure.upstream_status = Some(400);
    failure
}

#[test]
fn r137_a_lesson_is_learned_once_and_forgotten_in_time() {
    let (memory, target, scope) = (RefusalMemory::default(), target(), scope("c", "k"));
    let mut failure = refusal("Tool use with function calling is unsupported");
    let now = Instant::now();
    let request = Request::default();
    let nothing = RequiredTools::Nothing;
    let learned = lesson(&Learned::default(), &exchange(&[]), &nothing, &failure).unwrap();
    memory.remember(scope, &target, &request, &learned, now);
    assert!(memory.known(scope, &target, &request, now).no_mixed_tools);
    let other = Learned { no_call_ids: true, ..Learned::default() };
    memory.remember(scope, &target, &request, &other, now);
    let known = memory.known(scope, &target, &request, now);
    assert!(known.no_mixed_tools && known.no_call_ids);
    let later = now + REFUSAL_TTL * 2;
    assert!(!memory.known(scope, &target, &request, later).no_mixed_tools);
    failure.upstream_status = Some(403);
    assert!(lesson(&Learned::default(), &exchange(&[]), &nothing, &failure).is_none());
}

#[test]
fn what_one_key_was_refused_teaches_nothing_about_another() {
    let (memory, target, now) = (RefusalMemory::default(), target(), Instant::now());
    let request = request(vec![function("search", "Searches.", "{}")]);
    let learned = Learned { no_call_ids: true, ..refused_tools(&["search"]) };
    let first = scope("client-1", "pool-1");
    memory.remember(first, &target, &request, &learned, now);
    memory.refuse_tools(first, &target, br#"{"tools":[1]}"#, now);
    let signature = Signature::new("c2ln", None).unwrap();
    memory.refuse_signature(first, &target, &signature, now);
    assert_eq!(memory.known(first, &target, &request, now), learned);
    let brought = Pass::ApiKey(Secret::new("pool-1"));
    let brought = Scope::new(Owner::of("client-1"), &brought, None);
    for other in [scope("client-2", "pool-1"), scope("client-1", "pool-2"), brought] {
        assert_eq!(memory.known(other, &target, &request, now), Learned::default());
        assert!(!memory.refuses_tools(other, &target, br#"{"tools":[1]}"#, now));
        assert!(!memory.has_signatures(other));
        assert!(!memory.refuses_signature(other, &target, &signature, now));
    }
    assert!(memory.refuses_tools(first, &target, br#"{"tools":[1]}"#, now));
    assert!(memory.refuses_signature(first, &target, &signature, now));
    assert!(!memory.refuses_signature(first, &target, &signature, now + SIGNATURE_TTL));
}

#[test]
fn r97_r112_only_the_very_same_declaration_is_left_out() {
    let (memory, now, scope) = (RefusalMemory::default(), Instant::now(), scope("c", "k"));
    let learned = refused_tools(&["search"]);
    let refused = request(vec![
        function("search", "An earlier one, which is not sent.", "{}"),
        function("search", "Searches.", r#"{"type":"object"}"#),
        function("read", "Reads.", "{}"),
    ]);
    memory.remember(scope, &target(), &refused, &learned, now);
    assert_eq!(memory.known(scope, &target(), &refused, now), learned);
    for other in [
        function("search", "Searches the web.", r#"{"type":"object"}"#),
        function("search", "Searches.", r#"{"type":"object" }"#),
        function("search", "An earlier one, which is not sent.", "{}"),
        function("read", "Searches.", r#"{"type":"object"}"#),
    ] {
        let other = request(vec![other]);
        assert_eq!(memory.known(scope, &target(), &other, now), Learned::default());
    }
    let vertex = Target { backend: Backend::Vertex, ..target() };
    assert_eq!(memory.known(scope, &vertex, &refused, now), Learned::default());
    let model = Target { model: "gemini-2.5-pro".into(), ..target() };
    assert_eq!(memory.known(scope, &model, &refused, now), Learned::default());
    assert_eq!(memory.known(scope, &target(), &refused, now + REFUSAL_TTL), Learned::default());
}

#[test]
fn settings_are_known_by_their_values() {
    let (memory, now, scope) = (RefusalMemory::default(), Instant::now(), scope("c", "k"));
    let with = |temperature| {
        let mut request = Request::default();
        request.settings.temperature = Some(temperature);
        request
    };
    let learned = |name: &str| Learned {
        generation: BTreeSet::from([name.to_owned()]),
        ..Learned::default()
    };
    memory.remember(scope, &target(), &with(1.0), &learned("temperature"), now);
    assert_eq!(memory.known(scope, &target(), &with(1.0), now), learned("temperature"));
    assert_eq!(memory.known(scope, &target(), &with(0.5), now), Learned::default());
    let long = learned(&"x".repeat(MAX_SETTINGS_BYTES + 1));
    memory.remember(scope, &target(), &with(0.1), &long, now);
    assert_eq!(memory.known(scope, &target(), &with(0.1), now), Learned::default());
}

#[test]
fn a_required_tool_is_sent_whatever_was_refused() {
    let (memory, now, scope) = (RefusalMemory::default(), Instant::now(), scope("c", "k"));
    let named = |names: &[&str]| -> Vec<ToolName<'static>> {
        names.iter().map(|name| ToolName::plain((*name).to_owned())).collect()
    };
    let mut request = request(vec![function("a", "A.", "{}"), function("b", "B.", "{}")]);
    memory.remember(scope, &target(), &request, &refused_tools(&["a"]), now);
    let allowed = |required, names: &[&str]| ToolChoice::Allowed { required, names: named(names) };
    for (choice, left_out) in [
        (ToolChoice::Auto, &["a"][..]),
        (ToolChoice::Any, &["a"]),
        (ToolChoice::One(ToolName::plain("b")), &["a"]),
        (ToolChoice::One(ToolName::plain("a")), &[]),
        (allowed(true, &["a"]), &[]),
        (allowed(true, &["a", "b"]), &["a"]),
        (allowed(false, &["a"]), &["a"]),
    ] {
        request.tool_choice = choice;
        let known = memory.known(scope, &target(), &request, now);
        assert_eq!(known, refused_tools(left_out), "{:?}", request.tool_choice);
    }
    memory.remember(scope, &target(), &request, &refused_tools(&["b"]), now);
    request.tool_choice = ToolChoice::Any;
    assert_eq!(memory.known(scope, &target(), &request, now), Learned::default());
}

#[test]
fn the_refusal_of_a_required_tool_is_no_lesson() {
    let failure = refusal("* GenerateContentRequest.tools[0].function_declarations[0].parameters");
    let learned = |tools: &[&str], required: &RequiredTools| {
        lesson(&Learned::default(), &exchange(tools), required, &failure)
    };
    let one = |name: &'static str| RequiredTools::OneOf(vec![ToolName::plain(name)]);
    let lesson_about_a = Some(refused_tools(&["a"]));
    assert_eq!(learned(&["a", "b"], &RequiredTools::Nothing), lesson_about_a);
    assert_eq!(learned(&["a", "b"], &RequiredTools::Any), lesson_about_a);
    assert_eq!(learned(&["a", "b"], &one("b")), lesson_about_a);
    assert_eq!(learned(&["a", "b"], &one("undeclared")), lesson_about_a);
    assert_eq!(learned(&["a"], &RequiredTools::Any), None);
    assert_eq!(learned(&["a", "b"], &one("a")), None);
}

#[test]
fn tools_are_refused_once_and_forgotten_in_time() {
    let (memory, target, scope) = (RefusalMemory::default(), target(), scope("c", "k"));
    let now = Instant::now();
    let (first, again) = (br#"{"contents":[],"tools":[1]}"#, br#"{"tools":[1],"contents":[2]}"#);
    assert!(!memory.refuses_tools(scope, &target, first, now));
    memory.refuse_tools(scope, &target, first, now);
    assert!(memory.refuses_tools(scope, &target, again, now));
    assert!(!memory.refuses_tools(scope, &target, br#"{"tools":[2]}"#, now));
    assert!(!memory.refuses_tools(scope, &target, b"{}", now));
    assert!(!memory.refuses_tools(scope, &target, b"", now));
    assert!(!memory.refuses_tools(scope, &target, again, now + REFUSAL_TTL));
}

#[test]
fn memory_is_bounded_and_a_scope_has_a_share_of_it() {
    let mut map = Expiring::new(Duration::from_secs(10), 4, 2);
    let now = Instant::now();
    let [a, b, c] = ["a", "b", "c"].map(|client| scope(client, "k"));
    let print = |number: u8| [number; 32];
    for number in 0..4 {
        map.insert(a, print(number), number, now);
    }
    assert_eq!(map.entries.len(), 2, "no more than its share");
    for (number, scope) in [(10, b), (11, b), (20, c)] {
        map.insert(scope, print(number), number, now);
    }
    assert_eq!((map.entries.len(), map.ages.len()), (4, 4));
    assert_eq!(map.get(&print(0), now), None, "the oldest made room");
    assert_eq!((map.get(&print(1), now), map.get(&print(20), now)), (Some(&1), Some(&20)));
    map.insert(b, print(10), 99, now + Duration::from_secs(5));
    assert_eq!(map.get(&print(10), now), Some(&99));
    let later = now + Duration::from_secs(10);
    assert_eq!(map.get(&print(10), later), None, "another value is not another entry");
    map.insert(c, print(30), 30, later);
    assert_eq!((map.entries.len(), map.ages.len(), map.scopes.len()), (1, 1, 1));
    assert!(!map.has(a) && map.has(c));
}
