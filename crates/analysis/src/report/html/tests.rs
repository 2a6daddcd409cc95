use super::*;
use crate::fixtures::{ffs83, seqread89};
