//! The matrix of models.

use toolgate_core::canon::Backend;
use toolgate_core::upstream::generate_content::{Generation, Mixing, Profile, ThinkingControl};

use crate::support::{dev, vertex};

fn of(model: &str) -> Profile {
    Profile::of(&dev(model))
}

#[test]
fn names_of_models_are_understood() {
    use Generation::{Legacy, V2_5, V3, V3_5, V3_6, V3_7};
    for (model, want) in [
        ("gemini-1.5-pro-002", Legacy),
        ("gemini-1.5-flash@001", Legacy),
        ("gemini-2.0-flash-001", Legacy),
        ("gemma-3-27b-it", Legacy),
        ("gemini-2.5-pro", V2_5),
        ("models/gemini-2.5-flash", V2_5),
        ("gemini-2.5-flash-lite-preview-09-2025", V2_5),
        ("gemini-2.5-flash-image-preview", V2_5),
        ("gemini-live-2.5-flash-preview", V2_5),
        ("gemini-robotics-er-1.5-preview", V2_5),
        ("tunedModels/support-bot-7", V2_5),
        ("tunedModels/gemini-3.6-flash-support", V3_6),
        ("projects/p/locations/l/endpoints/123", V2_5),
        ("gemini-3-pro-preview", V3),
        ("gemini-3-flash", V3),
        ("gemini-3.1-pro-preview-customtools", V3),
        ("gemini-3.1-flash-lite", V3),
        ("publishers/google/models/gemini-3-flash-preview", V3),
        ("gemini-3.5-flash", V3_5),
        ("gemini-3.5-flash-lite", V3_6),
        ("Gemini-3.6-Flash", V3_6),
        ("gemini-3.7-flash", V3_7),
        ("gemini-3.8-flash", V3_7),
        ("gemini-3.12-flash", V3_7),
        ("gemini-4-argon", V3_7),
        ("gemini-10-xenon", V3_7),
        ("gemini-flash-latest", V3_7),
        ("gemini-pro-latest", V3_7),
        ("something-else", V3_7),
        ("", V3_7),
    ] {
        assert_eq!(of(model).generation, want, "{model}");
    }
}

#[test]
fn every_cell_of_the_matrix() {
    let models = [
        "gemini-2.5-flash",
        "gemini-3.1-pro-preview",
        "gemini-3.5-flash",
        "gemini-3.6-flash",
        "gemini-3.8-flash",
    ];
    type Cell = fn(&Profile) -> bool;
    let rows: [(&str, Cell, [bool; 5]); 10] = [
        ("signatures", |it| it.signatures_required, [false, true, true, true, true]),
        ("ids", |it| it.call_ids, [false, true, true, true, true]),
        ("strict responses", |it| it.strict_responses, [false, false, true, true, true]),
        ("trailing model turn", |it| it.trailing_model_turn, [true, true, true, false, false]),
        ("role function", |it| it.function_role, [true, true, true, false, false]),
        ("sampling ignored", |it| it.sampling_ignored, [false, false, false, true, true]),
        ("several candidates", |it| it.multiple_candidates, [true, false, false, false, false]),
        ("JSON beside tools", |it| it.json_beside_tools, [false, true, true, true, true]),
        ("mixed tools", |it| it.mixing != Mixing::Refused, [false, true, true, true, true]),
        ("media in responses", |it| it.response_media, [false, true, true, true, true]),
    ];
    for (what, cell, wants) in rows {
        for (model, want) in models.iter().zip(wants) {
            assert_eq!(cell(&of(model)), want, "{what} on {model}");
            assert_eq!(cell(&Profile::of(&vertex(model))), want, "{what} on {model}, Vertex");
        }
    }
}

#[test]
fn back_ends_differ() {
    for model in ["gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.8-flash"] {
        let new = model != "gemini-2.5-flash";
        let (dev, vertex) = (of(model), Profile::of(&vertex(model)));
        assert_eq!((dev.penalties, vertex.penalties), (false, true), "{model}");
        assert_eq!((dev.logprobs, vertex.logprobs), (false, true), "{model}");
        assert_eq!((dev.server_parts, vertex.server_parts), (new, false), "{model}");
        assert_eq!((dev.argument_streaming, vertex.argument_streaming), (false, new), "{model}");
        assert!(dev.json_schema && vertex.json_schema, "{model}");
        assert_eq!((dev.name_limit, vertex.name_limit), (64, 64), "{model}");
        let flag =
            if new { (Mixing::Flag, Mixing::Plain) } else { (Mixing::Refused, Mixing::Refused) };
        assert_eq!((dev.mixing, vertex.mixing), flag, "{model}");
    }
    assert!(!of("gemini-2.0-flash").json_schema);
}

#[test]
fn thinking_is_steered_in_three_ways() {
    let budget =
        |min, max, off, off_by_default| ThinkingControl::Budget { min, max, off, off_by_default };
    let level = |minimal| ThinkingControl::Level { minimal };
    for (model, want) in [
        ("gemini-2.0-flash", ThinkingControl::Unavailable),
        ("gemini-2.5-flash-image", ThinkingControl::Unavailable),
        ("gemini-2.5-flash", budget(1, 24_576, true, false)),
        ("gemini-2.5-flash-lite", budget(512, 24_576, true, true)),
        ("gemini-2.5-pro", budget(128, 32_768, false, false)),
        ("gemini-3-flash-preview", level(true)),
        ("gemini-3-pro-preview", level(false)),
        ("gemini-3.1-pro-preview", level(false)),
        ("gemini-3.1-flash-lite", level(true)),
        ("gemini-3.5-flash", level(true)),
        ("gemini-3.5-flash-lite", level(true)),
        ("gemini-3.6-flash", level(true)),
        ("gemini-3.7-flash", level(false)),
        ("gemini-3.8-flash", level(false)),
        ("gemini-4-argon", level(false)),
    ] {
        for backend in [Backend::Developer, Backend::Vertex] {
            let target = toolgate_core::canon::Target { model: model.to_owned(), backend };
            assert_eq!(Profile::of(&target).thinking, want, "{model}");
        }
    }
}
