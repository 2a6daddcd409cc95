//! Minix's parts by themselves: the cache, the layout, the messages.

mod cache;
mod layout;
mod messages;
