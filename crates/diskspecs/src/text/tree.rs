//! What a parameter file says, before anything is known of its meaning.

use diskperf_diagnostics::{Place, Problem};

/// A file with all that it takes in by `source`.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// Its blocks, in the order of the text.
    pub(crate) blocks: Vec<Block>,
    /// `instantiate [NAMES] as BLOCK`.
    pub(crate) instances: Vec<Instances>,
    /// `topology TYPE NAME [ .. ]`.
    pub(crate) topology: Vec<Component>,
    /// What is written and not taken: second definitions.
    pub(crate) warnings: Vec<Problem>,
    /// Keys that stand in comments, where somebody has taken them out.
    pub(crate) commented: Vec<Place>,
}

/// Components that share a block's values.
#[derive(Clone, Debug)]
pub(crate) struct Instances {
    /// A list of names and ranges of names.
    pub(crate) names: Vec<Value>,
    /// The name of the block.
    pub(crate) of: Place,
}

/// A component of the topology with what hangs on it.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    /// Its type, such as `disksim_bus`.
    pub(crate) kind: Place,
    /// The name of the instance.
    pub(crate) name: Place,
    /// What hangs on it.
    pub(crate) parts: Vec<Component>,
}

/// `type name { key = value, .. }`.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The type's name, such as `dm_disk`.
    pub(crate) kind: Place,
    /// The block's own name, unless it has none.
    pub(crate) name: Option<Place>,
    /// Keys and values in the order of the text; no key twice.
    pub(crate) entries: Vec<Entry>,
}

/// `key = value`.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The words of the key, one blank between them.
    pub(crate) key: String,
    /// Where the key is.
    pub(crate) key_place: Place,
    /// What it is set to.
    pub(crate) value: Value,
}

/// A value where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// What it is.
    pub(crate) kind: ValueKind,
    /// Where it is: of a list or a block, its first word.
    pub(crate) place: Place,
}

/// The kinds of value.
#[derive(Clone, Debug)]
pub(crate) enum ValueKind {
    /// Digits, with a sign or `0x` before them.
    Integer(i64),
    /// Digits on both sides of a point.
    Real(f64),
    /// Anything else without blanks; the place has its text.
    Word,
    /// `[a, b]`.
    List(Vec<Value>),
    /// `disk0 .. disk3`: this is the last one, the place has the first.
    Range(Place),
    /// `type { .. }`.
    Block(Box<Block>),
}

impl Block {
    /// What messages call it: its type, and its name if it has one.
    pub(crate) fn title(&self) -> String {
        let kind = super::excerpt(self.kind.written());
        match &self.name {
            Some(name) => format!("{kind} {}", super::excerpt(name.written())),
            None => kind,
        }
    }
}

impl Value {
    /// What it is, for a message.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            ValueKind::Integer(_) | ValueKind::Real(_) | ValueKind::Word => {
                format!("`{}`", super::excerpt(self.place.written()))
            }
            ValueKind::List(_) => "this list".to_owned(),
            ValueKind::Range(_) => "this range of names".to_owned(),
            ValueKind::Block(block) => format!("the block {}", block.title()),
        }
    }
}
