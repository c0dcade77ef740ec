//! Tests of the SQLite store against its own files.
