//! Common parts of the workloads of Zachariassen 1987: the tree of files, the format in which dump
//! writes it, and the table that restore leaves. Also the write-ahead log of the commit programs.

pub(crate) mod log;
pub(crate) mod populate;
pub(crate) mod symbols;
pub(crate) mod tape;
pub(crate) mod tree;
