//! A refused request is not sent again as it was.

use toolgate_core::canon::{Request, ToolName};
use toolgate_core::schema::Cache;
use toolgate_core::upstream::generate_content::{EncodeOptions, Learned, encode_request};

use crate::support::{NEW, asks, dev, encode, tool};

#[test]
fn e5_targets_are_learned_from_their_refusals() {
    let request = Request { tools: vec![tool("a"), tool("b c"), tool("d")], ..asks("Go.") };
    let exchange = encode(&request, &dev(NEW)).1.exchange;
    let alias = exchange.tools[1].alias.clone();
    let base = Learned::default;
    let generation = |names: &[&str]| Learned {
        generation: names.iter().map(|name| (*name).to_owned()).collect(),
        ..base()
    };
    let tools = |names: &[&'static str]| Learned {
        tools: names.iter().map(|name| ToolName::plain(*name)).collect(),
        ..base()
    };
    let rows = [
        (
            r#"Unknown name "id" at 'contents[3].parts[0].function_response': no such field"#,
            Learned { no_call_ids: true, ..base() },
        ),
        (r#"Unknown name "partsx" at 'generation_config': no such field"#, generation(&["partsx"])),
        (
            "`function_response.parts` is not supported here",
            Learned { no_response_media: true, ..base() },
        ),
        (
            "Tool use with function calling is unsupported",
            Learned { no_mixed_tools: true, ..base() },
        ),
        (
            "Function calling with a response mime type: 'application/json' is unsupported",
            Learned { no_json_beside_tools: true, ..base() },
        ),
        (
            "Penalty is not enabled for models/x",
            generation(&["frequencyPenalty", "presencePenalty"]),
        ),
        ("Thinking level is not supported for this model.", generation(&["thinkingConfig"])),
        (
            "* GenerateContentRequest.tools[0].function_declarations[2].parameters: bad\n\
             * GenerateContentRequest.tools[0].function_declarations[0].parameters: bad",
            tools(&["a", "d"]),
        ),
        ("function_declarations[99] is not there", base()),
        ("The model is overloaded.", base()),
    ];
    for (message, want) in rows {
        let mut learned = base();
        assert_eq!(learned.learn(message, &exchange), want != base(), "{message}");
        assert_eq!(learned, want, "{message}");
        assert!(!learned.learn(message, &exchange), "{message}");
    }
    let mut learned = base();
    let message = format!("because `{alias}` functionDeclaration `parameters.x` has no type");
    assert!(learned.learn(&message, &exchange));
    assert_eq!(learned, tools(&["b c"]));

    let cache = Cache::default();
    let options = EncodeOptions { learned: &learned, ..EncodeOptions::new(&cache) };
    let again = encode_request(&request, &dev(NEW), &options).unwrap();
    let left: Vec<_> = again.exchange.tools.iter().map(|entry| &*entry.alias).collect();
    assert_eq!(left, ["a", "d"]);
}
