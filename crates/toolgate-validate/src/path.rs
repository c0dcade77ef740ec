//! Paths of fields, in the form in which Google's errors name them.

use std::fmt;

/// Path of a value in a body, such as `contents[2].parts[0]`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The body itself.
    Root,
    /// A member of an object.
    Field(&'a Self, &'a str),
    /// An element of an array.
    Index(&'a Self, usize),
}

impl Path<'_> {
    pub(crate) fn field<'a>(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    pub(crate) fn index(&self, index: usize) -> Path<'_> {
        Path::Index(self, index)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(name),
            Path::Field(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
