//! Gemini's encoder, through its public surface.

#[cfg(test)]
mod checker;
#[cfg(test)]
mod history;
#[cfg(test)]
mod learn;
#[cfg(test)]
mod output;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod results;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod signatures;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tools;
