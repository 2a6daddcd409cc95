//! The translation layer against what is known of drives: formulas, tables, laws.

mod expectations;
mod features;
mod laws;
mod mean_field;
mod oracles;
mod pasts;
mod power_cut;
mod properties;
mod skew_and_trim;
mod support;
