//! `toolgate translate`: the core on the command line. No configuration, no network.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use toolgate_core::canon::{Assembler, Backend, Failure, IdGen, Losses, Request, Target};
use toolgate_core::dialect::{DecodeOptions, Decoded, Stamp};
use toolgate_core::gemini::{self};
use toolgate_core::schema::Cache;
use toolgate_core::seal::Sealer;
use toolgate_core::translate::{Dialect, Echo, Translator, decode_request, encode_error};
use toolgate_core::upstream::generate_content::{
    EncodeOptions, Encoded, Learned, SchemaPolicy, StreamDecoder, encode_request,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum TranslateArgs {
    /// A client's request to Gemini's
    Request(RequestArgs),
    /// Gemini's answer, whole or a recorded stream, to a client's
    Response(ResponseArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RequestArgs {
    /// The client's dialect
    #[arg(long, value_parser = dialect)]
    from: Dialect,
    /// The Gemini model that the request is for
    #[arg(long)]
    model: String,
    /// The service that the request is for
    #[arg(long, default_value = "developer")]
    backend: Service,
    /// Report losses and changes as JSON lines on standard error
    #[arg(long)]
    report: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResponseArgs {
    /// The client's dialect
    #[arg(long, value_parser = dialect)]
    to: Dialect,
    /// Write a stream
    #[arg(long)]
    stream: bool,
    /// The client's own request, for names and schemas
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// The Gemini model that answered [default: the request's]
    #[arg(long)]
    model: Option<String>,
    /// The service that answered
    #[arg(long, default_value = "developer")]
    backend: Service,
    /// Report losses and changes as JSON lines on standard error
    #[arg(long)]
    report: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Service {
    /// Gemini Developer API
    Developer,
    /// Vertex AI
    Vertex,
}

impl From<Service> for Backend {
    fn from(service: Service) -> Self {
        match service {
            Service::Developer => Self::Developer,
            Service::Vertex => Self::Vertex,
        }
    }
}

fn dialect(name: &str) -> Result<Dialect, String> {
    Dialect::from_name(name)
        .ok_or_else(|| "must be anthropic, responses, chat or gemini".to_owned())
}

pub(crate) fn run(args: &TranslateArgs) -> Result<ExitCode> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).context("cannot read standard input")?;
    let (output, losses, report) = match args {
        TranslateArgs::Request(args) => {
            let (output, losses) = request(args, &input)?;
            (output, losses, args.report)
        }
        TranslateArgs::Response(args) => {
            let (output, losses) = response(args, &input)?;
            (output, losses, args.report)
        }
    };
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&output)?;
    if output.last() != Some(&b'\n') {
        stdout.write_all(b"\n")?;
    }
    if report {
        let mut stderr = std::io::stderr().lock();
        for loss in &losses {
            writeln!(stderr, "{}", serde_json::to_string(loss)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn request(args: &RequestArgs, input: &[u8]) -> Result<(Vec<u8>, Losses)> {
    let target = Target { model: args.model.clone(), backend: args.backend.into() };
    let body = text(input)?;
    let Decoded { mut request, losses: mut all, .. } = decoded(args.from, body, &args.model)?;
    let (encoded, losses) = encoded(&mut request, &target)?;
    all.extend(losses);
    Ok((encoded.body, all))
}

fn response(args: &ResponseArgs, input: &[u8]) -> Result<(Vec<u8>, Losses)> {
    let file = match &args.request {
        Some(path) => {
            let bytes = std::fs::read(path);
            let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
            text(&bytes)?.to_owned()
        }
        None => stand_in(args.to).to_owned(),
    };
    let model = args.model.as_deref().unwrap_or("gemini-3.6-flash");
    let Decoded { mut request, echo, .. } = decoded(args.to, &file, model)?;
    let asked = request.model.strip_prefix("models/").unwrap_or(&request.model).to_owned();
    let model = match &args.model {
        Some(model) => model.clone(),
        None if asked.starts_with("gemini") => asked,
        None => model.to_owned(),
    };
    let target = Target { model, backend: args.backend.into() };
    let (Encoded { exchange, .. }, _) = encoded(&mut request, &target)?;
    let exchange = Arc::new(exchange);
    let ids = IdGen::from_bytes(input);
    // The same input gives the same output: ids come from the input, and time stands still.
    let stamp = Stamp::new(IdGen::from_bytes(&[input, b"stamp"].concat()), 0);
    let sealer = Sealer::default();
    if args.stream {
        let mut translator = Translator::new(exchange, ids, echo.encoder(stamp, sealer));
        let mut out = Vec::new();
        translator.feed(input, &mut out);
        translator.finish(&mut out);
        let seen = translator.seen().clone();
        if let Some(failure) = seen.failure {
            translator.fail(failure, &mut out);
        }
        return Ok((out, seen.finish.map(|finish| finish.losses).unwrap_or_default()));
    }
    let mut decoder = StreamDecoder::new(exchange, ids);
    let mut assembler = Assembler::default();
    decoder.feed(input, &mut assembler);
    decoder.finish(&mut assembler);
    Ok(match assembler.finish() {
        Ok(answer) => {
            (echo.encode_response(&answer, &stamp, &sealer), answer.finish.losses.clone())
        }
        Err(failure) => (error_body(args.to, &failure), Losses::new()),
    })
}

fn error_body(dialect: Dialect, failure: &Failure) -> Vec<u8> {
    encode_error(dialect, failure, "req_translate").body
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| anyhow!("the input is not UTF-8: {error}"))
}

fn decoded<'a>(dialect: Dialect, body: &'a str, model: &str) -> Result<Decoded<'a, Echo>> {
    let sealer = Sealer::default();
    let options = DecodeOptions { sealer: &sealer };
    Ok(match dialect {
        Dialect::Gemini => {
            let decoded = gemini::decode_request(body, model, false, &options)?;
            let echo = Echo::Gemini(decoded.echo);
            Decoded { request: decoded.request, echo, losses: decoded.losses }
        }
        Dialect::Anthropic | Dialect::Chat | Dialect::Responses => {
            decode_request(dialect, body, &options)?
        }
    })
}

fn encoded(request: &mut Request<'_>, target: &Target) -> Result<(Encoded, Losses)> {
    let mut losses = request.place_signatures();
    let cache = Cache::new(1);
    let options = EncodeOptions {
        cache: &cache,
        strict: false,
        tools_enabled: true,
        schema: SchemaPolicy::Auto,
        learned: &Learned::default(),
    };
    let mut encoded = encode_request(request, target, &options)?;
    losses.append(&mut encoded.losses);
    Ok((encoded, losses))
}

/// A request that asks for everything an answer can show.
fn stand_in(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => {
            r#"{"model":"gemini-3.6-flash","max_tokens":1024,"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"."}]}"#
        }
        Dialect::Chat => {
            r#"{"model":"gemini-3.6-flash","reasoning_effort":"medium","stream_options":{"include_usage":true},"messages":[{"role":"user","content":"."}]}"#
        }
        Dialect::Gemini => r#"{"contents":[{"role":"user","parts":[{"text":"."}]}]}"#,
        Dialect::Responses => {
            r#"{"model":"gemini-3.6-flash","reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"],"input":"."}"#
        }
    }
}
