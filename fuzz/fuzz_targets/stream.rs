//! Whatever Gemini sends: events follow the grammar, and however it is cut, every client sees the
//! same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use toolgate_core::canon::{Encoder, Event, Grammar, IdGen, Stamp};
use toolgate_core::gemini::{Backend, Exchange, StreamDecoder, Target};
use toolgate_core::seal::Sealer;
use toolgate_core::{anthropic, chat, gemini, responses};

fn exchange() -> Exchange {
    Exchange {
        target: Target { model: "gemini-3.6-flash".into(), backend: Backend::Developer },
        tools: Vec::new(),
        one_call: false,
        answer_function: None,
    }
}

/// Every client's bytes, one after the other.
fn translated<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let stamp = || Stamp { ids: IdGen::new(1), created: 0 };
    let sealer = Sealer::default;
    let mut encoders: [Box<dyn Encoder>; 4] = [
        Box::new(anthropic::StreamEncoder::new(Default::default(), stamp(), sealer())),
        Box::new(chat::StreamEncoder::new(Default::default(), stamp(), sealer())),
        Box::new(gemini::StreamEncoder::new(Default::default(), stamp(), sealer())),
        Box::new(responses::StreamEncoder::new(Default::default(), stamp(), sealer())),
    ];
    let mut outputs = vec![Vec::new(); encoders.len()];
    let mut grammar = Grammar::default();
    let mut sink = |event: &Event<'_>| {
        grammar.feed(event).unwrap();
        for (encoder, out) in encoders.iter_mut().zip(&mut outputs) {
            encoder.event(event, out);
        }
    };
    let mut decoder = StreamDecoder::new(exchange(), IdGen::new(2));
    for piece in pieces {
        decoder.feed(piece, &mut sink);
    }
    decoder.finish(&mut sink);
    grammar.finish().unwrap();
    outputs
}

fuzz_target!(|input: &[u8]| {
    let Some((&size, bytes)) = input.split_first() else { return };
    let whole = translated(std::iter::once(bytes));
    assert_eq!(translated(bytes.chunks(usize::from(size) + 1)), whole);
});
