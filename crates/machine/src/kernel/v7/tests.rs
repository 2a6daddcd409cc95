//! The seventh edition's file system: its layout alone, and its allocator on
//! a modelled computer.

mod allocator;
mod layout;
