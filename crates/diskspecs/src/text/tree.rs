//! Syntax tree of a parameter file, without knowledge of the meaning of keys.

use diskperf_diagnostics::{Problem, SourceSpan};

/// Parameter file with all files that it includes by `source`.
#[derive(Clone, Debug)]
pub(crate) struct ParameterDocument {
    /// Blocks in the order of the text.
    pub(crate) blocks: Vec<ParameterBlock>,
    /// Instances of blocks: `instantiate [NAMES] as BLOCK`.
    pub(crate) instances: Vec<BlockInstances>,
    /// Topology of components: `topology TYPE NAME [ .. ]`.
    pub(crate) topology_roots: Vec<TopologyComponent>,
    /// Warnings about ignored text: duplicate definitions.
    pub(crate) warnings: Vec<Problem>,
    /// Keys in comments, which someone has disabled.
    pub(crate) commented_keys: Vec<SourceSpan>,
}

/// Components that share the values of one block.
#[derive(Clone, Debug)]
pub(crate) struct BlockInstances {
    /// Names and ranges of names of the components.
    pub(crate) names: Vec<ParameterValue>,
    pub(crate) block_name: SourceSpan,
}

#[derive(Clone, Debug)]
pub(crate) struct TopologyComponent {
    /// Type of the component, such as `disksim_bus`.
    pub(crate) kind: SourceSpan,
    pub(crate) name: SourceSpan,
    pub(crate) attached_components: Vec<TopologyComponent>,
}

/// Block `type name { key = value, .. }`.
#[derive(Clone, Debug)]
pub(crate) struct ParameterBlock {
    /// Type of the block, such as `dm_disk`.
    pub(crate) kind: SourceSpan,
    /// Name of the block, if it has one.
    pub(crate) name: Option<SourceSpan>,
    /// Keys and values in the order of the text; keys are unique.
    pub(crate) entries: Vec<ParameterEntry>,
}

/// Entry `key = parse_value` of a block.
#[derive(Clone, Debug)]
pub(crate) struct ParameterEntry {
    /// Words of the key, with one blank between them.
    pub(crate) key: String,
    pub(crate) key_span: SourceSpan,
    pub(crate) value: ParameterValue,
}

#[derive(Clone, Debug)]
pub(crate) struct ParameterValue {
    pub(crate) kind: ValueKind,
    /// Place of the value; for a list or a block, that of its first word.
    pub(crate) span: SourceSpan,
}

#[derive(Clone, Debug)]
pub(crate) enum ValueKind {
    /// Integer: digits with an optional sign or `0x`.
    Integer(i64),
    /// Decimal number with digits on both sides of the point.
    Real(f64),
    /// Word: any other text without blanks. The place holds the text.
    Word,
    /// List of values, `[a, b]`.
    List(Vec<ParameterValue>),
    /// Range of names `disk0 .. disk3`. This is the place of the last name, and the value's place
    /// that of the first.
    Range(SourceSpan),
    /// Nested block `type { .. }`.
    Block(Box<ParameterBlock>),
}

impl ParameterBlock {
    /// Returns the block's type and name, if it has one, for messages.
    pub(crate) fn title(&self) -> String {
        let kind = super::shorten_text(self.kind.as_str());
        match &self.name {
            Some(name) => format!("{kind} {}", super::shorten_text(name.as_str())),
            None => kind,
        }
    }
}

impl ParameterValue {
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            ValueKind::Integer(_) | ValueKind::Real(_) | ValueKind::Word => {
                format!("`{}`", super::shorten_text(self.span.as_str()))
            }
            ValueKind::List(_) => "this list".to_owned(),
            ValueKind::Range(_) => "this range of names".to_owned(),
            ValueKind::Block(block) => format!("the block {}", block.title()),
        }
    }
}
