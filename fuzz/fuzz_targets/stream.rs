//! For any bytes from Gemini, events follow the grammar, and every client's bytes do not depend on
//! chunk boundaries.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use toolgate_core::canon::{Backend, Event, Grammar, IdGen, Target, ToolName};
use toolgate_core::dialect::Stamp;
use toolgate_core::json::Raw;
use toolgate_core::schema::Checker;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{Echo, Translator};
use toolgate_core::upstream::generate_content::{Exchange, StreamDecoder, ToolEntry, ToolInput};

/// Tools of the golden answers: with a schema, without one, and freeform.
static EXCHANGE: LazyLock<Arc<Exchange>> = LazyLock::new(|| {
    let schema = r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"},"todos":{"type":"array","items":{"type":"object"}}},"required":["command"]}"#;
    let schema = Raw::parse(schema.to_owned());
    let entry = |name: &str, input| ToolEntry {
        alias: name.to_owned(),
        name: ToolName::plain(name.to_owned()),
        input,
    };
    let checker = Arc::new(Checker::new(schema.as_ref()));
    Arc::new(Exchange {
        target: Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer },
        tools: vec![
            entry("Bash", ToolInput::Json(checker)),
            entry("TodoWrite", ToolInput::Json(Arc::new(Checker::default()))),
            entry("Read", ToolInput::Freeform),
        ],
        one_call: false,
        answer_function: None,
    })
});

fn echoes() -> [Echo; 4] {
    [
        Echo::Anthropic(Default::default()),
        Echo::Chat(Default::default()),
        Echo::Gemini(Default::default()),
        Echo::Responses(Default::default()),
    ]
}

/// Bytes for a client of each dialect.
fn translated(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    let translate = |echo: Echo| {
        let stamp = Stamp::new(IdGen::new(1), 0);
        let encoder = echo.encoder(stamp, Sealer::default());
        let mut translator = Translator::new(Arc::clone(&EXCHANGE), IdGen::new(2), encoder);
        let mut out = Vec::new();
        for piece in pieces {
            translator.feed(piece, &mut out);
        }
        translator.finish(&mut out);
        if let Some(failure) = translator.seen().failure.clone() {
            translator.fail(failure, &mut out);
        }
        out
    };
    echoes().map(translate).into()
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let mut grammar = Grammar::default();
    let mut sink = |event: &Event<'_>| grammar.feed(event).unwrap();
    let mut decoder = StreamDecoder::new(Arc::clone(&EXCHANGE), IdGen::new(2));
    decoder.feed(bytes, &mut sink);
    decoder.finish(&mut sink);
    grammar.finish().unwrap();

    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(size) + 1).collect();
    assert_eq!(translated(&pieces), translated(&[bytes]));
});
