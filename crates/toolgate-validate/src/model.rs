//! Capabilities of each generation of models.
//!
//! This is a second reading of Google's rules, deliberately separate from the encoder's table of
//! profiles: where the two differ, one of them is wrong.

/// Generation of a model. Later ones refuse more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// Before 2.5.
    Legacy,
    /// 2.5.
    G2_5,
    /// 3 and 3.1.
    G3,
    /// 3.5-flash.
    G3_5,
    /// 3.5-flash-lite and 3.6.
    G3_6,
    /// 3.7 and later.
    G3_7,
}

/// A model, as described by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// The generation.
    pub generation: Generation,
    /// Whether it is a `pro` model.
    pub pro: bool,
    /// Whether it is a `flash-lite` model.
    pub lite: bool,
}

impl Model {
    /// Parses a name without `models/`. `None` for a name that Google does not know.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "gemini-flash-latest" => return Self::named("gemini-3.8-flash"),
            "gemini-flash-lite-latest" => return Self::named("gemini-3.5-flash-lite"),
            "gemini-pro-latest" => return Self::named("gemini-3.1-pro-preview"),
            _ => {}
        }
        let (version, kind) = name.strip_prefix("gemini-")?.split_once('-')?;
        let lite = kind.starts_with("flash-lite");
        let generation = match version {
            "1.5" | "2.0" => Generation::Legacy,
            "2.5" => Generation::G2_5,
            "3" | "3.1" => Generation::G3,
            "3.5" if lite => Generation::G3_6,
            "3.5" => Generation::G3_5,
            "3.6" => Generation::G3_6,
            "3.7" | "3.8" | "3.9" => Generation::G3_7,
            _ => {
                let major: u32 = version.split('.').next()?.parse().ok()?;
                (major >= 4).then_some(Generation::G3_7)?
            }
        };
        Some(Self { generation, pro: kind.starts_with("pro"), lite })
    }

    /// Whether the model signs its calls.
    pub fn signs_calls(self) -> bool {
        self.generation >= Generation::G3
    }

    /// Whether calls have ids on the Developer API.
    pub fn issues_call_ids(self) -> bool {
        self.generation >= Generation::G3
    }

    /// Whether a mismatch of calls and responses gets an empty answer; older models refuse it.
    pub(crate) fn answers_mismatch_with_nothing(self) -> bool {
        self.generation >= Generation::G3_5
    }

    /// Whether `thinkingLevel` is supported.
    pub(crate) fn supports_thinking_level(self) -> bool {
        self.generation >= Generation::G3
    }

    /// Whether the level MINIMAL is supported.
    pub(crate) fn supports_minimal_level(self) -> bool {
        self.supports_thinking_level() && !self.pro && self.generation < Generation::G3_7
    }

    /// Lowest and highest `thinkingBudget`, apart from 0 and −1.
    pub(crate) fn thinking_budget_range(self) -> Option<(i64, i64)> {
        match (self.generation, self.pro, self.lite) {
            (Generation::G2_5, true, _) => Some((128, 32_768)),
            (Generation::G2_5, false, true) => Some((512, 24_576)),
            (Generation::G2_5, false, false) => Some((0, 24_576)),
            (
                Generation::Legacy
                | Generation::G3
                | Generation::G3_5
                | Generation::G3_6
                | Generation::G3_7,
                _,
                _,
            ) => None,
        }
    }

    /// Whether thinking can be disabled.
    pub(crate) fn can_disable_thinking(self) -> bool {
        self.generation <= Generation::G2_5 && !self.pro
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, want: Option<(Generation, bool, bool)>) {
        let got = Model::named(name).map(|model| (model.generation, model.pro, model.lite));
        assert_eq!(got, want, "{name}");
    }

    #[test]
    fn names_give_generation_and_size() {
        use Generation::*;
        check("gemini-2.0-flash", Some((Legacy, false, false)));
        check("gemini-2.5-pro", Some((G2_5, true, false)));
        check("gemini-2.5-flash-lite-preview-09-2025", Some((G2_5, false, true)));
        check("gemini-3-flash", Some((G3, false, false)));
        check("gemini-3-pro-preview", Some((G3, true, false)));
        check("gemini-3.1-flash-lite", Some((G3, false, true)));
        check("gemini-3.5-flash", Some((G3_5, false, false)));
        check("gemini-3.5-flash-lite", Some((G3_6, false, true)));
        check("gemini-3.6-flash", Some((G3_6, false, false)));
        check("gemini-3.8-flash", Some((G3_7, false, false)));
        check("gemini-4-argon", Some((G3_7, false, false)));
        check("gemini-flash-latest", Some((G3_7, false, false)));
        check("gemini-pro-latest", Some((G3, true, false)));
        check("gemini-nonexistent-rig-test", None);
        check("gemini-3.2-flash", None);
        check("gpt-5", None);
    }
}
