//! Delivers the answer of a turn, and records it where the session needs it.

use futures_util::stream;
use http::StatusCode;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use toolgate_core::canon::{Answer, Call};
use toolgate_core::dialect::Stamp;
use toolgate_core::gemini;
use toolgate_core::responses;
use toolgate_core::translate::{AnyEncoder, Echo};

use super::RequestContext;
use super::reply::{self, Body, Reply};
use crate::sessions::{EncodedAnswer, EventLog, Recorder};
use crate::turn::{Answered, Outcome, TurnStream};

/// Maximum size of a stream that can be streamed again: 4 MiB.
const MAX_RECORDED_BYTES: usize = 4 << 20;

/// Delivers an answer. With a recorder, the answer is stored before the client sees its end.
pub(crate) async fn deliver(
    context: &RequestContext,
    outcome: Outcome,
    recorder: Option<Recorder>,
) -> Reply {
    let Outcome { echo, answer, stamp, size, .. } = outcome;
    let dialect = echo.dialect();
    match answer {
        Answered::Whole(answer) => {
            let work = |context: RequestContext| async move {
                let encoded = encode(&echo, &answer, &stamp, &context);
                let has_signatures = answer.calls().any(|call| is_stored(&context, call));
                if let Some(recorder) = recorder {
                    recorder.record(&echo, &encoded, has_signatures).await;
                } else if has_signatures {
                    context.turn.services.store.flush().await;
                }
                encoded.json
            };
            match context.compute(size, work).await {
                Ok(json) => reply::json(StatusCode::OK, json),
                Err(failure) => reply::failure(dialect, &failure, &context.turn.request_id),
            }
        }
        Answered::Stream(stream) => {
            let content_type = match &echo {
                Echo::Gemini(echo) if echo.framing == gemini::Framing::Array => "application/json",
                Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) | Echo::Responses(_) => {
                    "text/event-stream"
                }
            };
            let recording = recorder
                .map(|recorder| StreamRecording::new(recorder, echo, stamp, size).with_events());
            reply::stream(content_type, stream_body(stream, context, recording))
        }
    }
}

/// Encodes an answer in one piece.
fn encode(echo: &Echo, answer: &Answer, stamp: &Stamp, context: &RequestContext) -> EncodedAnswer {
    let sealer = &context.turn.services.sealer;
    match echo {
        Echo::Responses(echo) => responses::encode_object(answer, echo, stamp, sealer).into(),
        Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => {
            echo.encode_response(answer, stamp, sealer).into()
        }
    }
}

/// Records a streamed answer.
pub(crate) struct StreamRecording {
    pub(crate) recorder: Recorder,
    pub(crate) echo: Echo,
    stamp: Stamp,
    /// Number of bytes of the request: the answer may repeat parts of it.
    size: usize,
    /// Events, where the stream can be streamed again.
    events: Option<EventLog>,
    /// Number of copies of the settings in the events so far.
    copies: usize,
}

impl StreamRecording {
    pub(crate) fn new(recorder: Recorder, echo: Echo, stamp: Stamp, size: usize) -> Self {
        Self { recorder, echo, stamp, size, events: None, copies: 0 }
    }

    /// Records the events of a stored response, too.
    fn with_events(mut self) -> Self {
        let is_stored = match &self.echo {
            Echo::Responses(echo) => echo.is_stored(),
            Echo::Anthropic(_) | Echo::Chat(_) | Echo::Gemini(_) => false,
        };
        self.events = is_stored.then(EventLog::default);
        self
    }

    /// Adds bytes that the client gets.
    fn push(&mut self, bytes: &[u8], stream: &TurnStream) {
        if let Some(events) = &mut self.events
            && let AnyEncoder::Responses(encoder) = stream.translator().encoder()
        {
            if events.len() + bytes.len() <= MAX_RECORDED_BYTES {
                let places = encoder.settings_places();
                let new = places.get(self.copies..).unwrap_or_default();
                events.push(bytes, encoder.settings(), new);
                self.copies = places.len();
            } else {
                self.events = None;
            }
        }
    }

    /// Stores the events of a complete stream. Returns the answer in one piece, which remains to be stored.
    fn store_events(
        &mut self,
        stream: &TurnStream,
        context: &RequestContext,
    ) -> Option<EncodedAnswer> {
        let events = self.events.take();
        if let Some(events) = events
            && let AnyEncoder::Responses(encoder) = stream.translator().encoder()
        {
            let id = encoder.response_id();
            if let Some(settings) = self.recorder.record_events(id, &events, encoder.settings()) {
                let object = encoder.object_without_settings();
                return Some(EncodedAnswer::without_settings(object, settings));
            }
        }
        self.answer(stream, context)
    }

    /// The streamed answer in one piece.
    pub(crate) fn answer(
        &self,
        stream: &TurnStream,
        context: &RequestContext,
    ) -> Option<EncodedAnswer> {
        let translator = stream.translator();
        match translator.encoder() {
            AnyEncoder::Responses(encoder) => Some(encoder.object().into()),
            AnyEncoder::Anthropic(_) | AnyEncoder::Chat(_) | AnyEncoder::Gemini(_) => {
                let answer = translator.answer()?;
                Some(encode(&self.echo, &answer, &self.stamp, context))
            }
        }
    }
}

/// Body of a streamed reply: the stream of the turn, polled as the client reads.
fn stream_body(
    stream: Box<TurnStream>,
    context: &RequestContext,
    recording: Option<StreamRecording>,
) -> Body {
    let state = (stream, context.clone(), recording);
    let frames = stream::unfold(state, |(mut stream, context, mut recording)| async move {
        let bytes = stream.next().await?;
        if let Some(recording) = &mut recording {
            recording.push(&bytes, &stream);
        }
        if stream.has_ended() {
            let has_signatures = has_signatures(&stream, &context);
            if let Some(mut recording) = recording.take()
                && let Some(answer) = recording.store_events(&stream, &context)
            {
                let StreamRecording { recorder, echo, size, .. } = recording;
                let size = size + answer.json.len();
                let record =
                    |_| async move { recorder.record(&echo, &answer, has_signatures).await };
                if let Err(failure) = context.compute(size, record).await {
                    let request = &*context.turn.request_id;
                    tracing::error!(request, "cannot store the answer: {failure}");
                }
            } else if has_signatures {
                context.turn.services.store.flush().await;
            }
        }
        Some((Ok(Frame::data(bytes)), (stream, context, recording)))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Whether the store holds state of the calls that a stream has delivered.
pub(crate) fn has_signatures(stream: &TurnStream, context: &RequestContext) -> bool {
    stream.translator().seen().calls.iter().any(|call| is_stored(context, call))
}

/// Whether the store holds state of a call, or of hidden calls that belong to it.
fn is_stored(context: &RequestContext, call: &Call<'_>) -> bool {
    call.signature.is_some() || context.turn.current.config.corrections > 0
}
