//! What the workloads of Zachariassen 1987 share: the tree of files, what dump makes of
//! it, and what restore leaves beside it.

pub(crate) mod log;
pub(crate) mod populate;
pub(crate) mod symbols;
pub(crate) mod tape;
pub(crate) mod tree;
