//! The user's own folders (XDG base directories).

use std::path::{Path, PathBuf};

/// Returns the configuration file in the user's configuration folder:
/// `$XDG_CONFIG_HOME/toolgate/toolgate.toml`, by default below `~/.config`.
pub fn user_config_file(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    Some(folder(env, "XDG_CONFIG_HOME", ".config")?.join("toolgate.toml"))
}

/// Returns the user's state folder: `$XDG_STATE_HOME/toolgate`, by default below `~/.local/state`.
pub fn state_folder(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    folder(env, "XDG_STATE_HOME", ".local/state")
}

/// Relative paths in these variables are ignored: they would depend on the current folder.
fn folder(
    env: &dyn Fn(&str) -> Option<String>,
    variable: &str,
    below_home: &str,
) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).filter(|path| Path::new(path).is_absolute());
    let base = match absolute(variable) {
        Some(base) => PathBuf::from(base),
        None => Path::new(&absolute("HOME")?).join(below_home),
    };
    Some(base.join("toolgate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_never_depend_on_the_current_one() {
        let found = |variables: &[(&str, &str)]| {
            let env = |name: &str| {
                let known = variables.iter().find(|(known, _)| *known == name);
                known.map(|(_, value)| (*value).to_owned())
            };
            let shown = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
            (shown(user_config_file(&env)), shown(state_folder(&env)))
        };
        let (config, state) = found(&[("HOME", "/u")]);
        assert_eq!(config.as_deref(), Some("/u/.config/toolgate/toolgate.toml"));
        assert_eq!(state.as_deref(), Some("/u/.local/state/toolgate"));
        let (config, state) = found(&[("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")]);
        assert_eq!(config.as_deref(), Some("/c/toolgate/toolgate.toml"));
        assert_eq!(state.as_deref(), Some("/s/toolgate"));
        assert_eq!(found(&[("HOME", "."), ("XDG_CONFIG_HOME", "c")]), (None, None));
    }
}
