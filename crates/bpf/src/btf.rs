//! Reader for BTF, the kernel's description of its own types (the kernel's documentation,
//! bpf/btf.rst).
//!
//! A module's BTF is *split*: its type numbers go on after the last one of the kernel, and offsets
//! of names below the length of the kernel's names are names there.

use std::sync::Arc;

/// Reason why bytes are no BTF, or why a type or member is not found in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// Bytes that do not follow the format.
    #[error("malformed BTF: {0}")]
    Malformed(&'static str),
    /// Type that this kernel does not have.
    #[error("this kernel has no type {0}")]
    NoType(String),
    /// Member that the type does not have on this kernel.
    #[error("{type_name} has no member {member} on this kernel")]
    NoMember {
        /// Name of the structure.
        type_name: String,
        /// Path of the member, with a period between levels.
        member: String,
    },
    /// Tracepoint without an argument of a type on this kernel.
    #[error("the tracepoint {tracepoint} has no argument {argument} on this kernel")]
    NoArgument {
        /// Name of the tracepoint.
        tracepoint: String,
        /// Type of the argument.
        argument: String,
    },
}

/// Number of a type; 0 is `void`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// Kind of a type, by the numbers of BTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TypeKind {
    Void,
    Int,
    Pointer,
    Array,
    Struct,
    Union,
    Enum,
    Forward,
    Typedef,
    Volatile,
    Const,
    Restrict,
    Function,
    Prototype,
    Variable,
    DataSection,
    Float,
    DeclarationTag,
    TypeTag,
    Enum64,
}

const KINDS: [TypeKind; 20] = [
    TypeKind::Void,
    TypeKind::Int,
    TypeKind::Pointer,
    TypeKind::Array,
    TypeKind::Struct,
    TypeKind::Union,
    TypeKind::Enum,
    TypeKind::Forward,
    TypeKind::Typedef,
    TypeKind::Volatile,
    TypeKind::Const,
    TypeKind::Restrict,
    TypeKind::Function,
    TypeKind::Prototype,
    TypeKind::Variable,
    TypeKind::DataSection,
    TypeKind::Float,
    TypeKind::DeclarationTag,
    TypeKind::TypeTag,
    TypeKind::Enum64,
];

/// Member of a structure: a place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Offset from the start of the outermost structure, in bytes.
    pub offset_bytes: u32,
    /// Size of the member in bytes; 0 where its type has none.
    pub size_bytes: u32,
    /// Type of the member.
    pub type_id: TypeId,
}

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// Length up to which sums of two lengths fit 32 bits. The kernel's own types take 5 MB.
const BYTES_MAX: usize = 1 << 30;
/// Levels of qualifiers, typedefs and unnamed structures that are followed. The kernel has fewer
/// than ten; more are a cycle.
const NESTING_MAX: u32 = 32;

/// Types of the kernel, or of one module on top of them.
#[derive(Clone, Debug)]
pub struct Btf {
    base: Option<Arc<Btf>>,
    bytes: Vec<u8>,
    types: Vec<TypeRecord>,
    strings: std::ops::Range<usize>,
    first_type: u32,
    /// Length of the names of the kernel and its base together, in bytes.
    first_string: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeRecord {
    name_offset: u32,
    info: u32,
    /// Size in bytes, or the number of the type that this one refers to.
    size_or_type: u32,
    /// Position of what follows the record.
    data: u32,
}

impl TypeRecord {
    fn kind(self) -> TypeKind {
        KINDS[(self.info >> 24 & 31) as usize]
    }

    pub(crate) fn entry_count(self) -> usize {
        (self.info & 0xffff) as usize
    }

    fn has_kind_flag(self) -> bool {
        self.info >> 31 == 1
    }

    pub(crate) fn referred_type(self) -> TypeId {
        TypeId(self.size_or_type)
    }
}

impl Btf {
    /// Reads the types of the kernel.
    ///
    /// # Errors
    ///
    /// The bytes do not follow the format.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, BtfError> {
        Self::parse_on(bytes, None)
    }

    /// Reads the types of a module, which refer to those of the kernel.
    ///
    /// # Errors
    ///
    /// The bytes do not follow the format.
    pub fn parse_module(bytes: Vec<u8>, kernel: Arc<Btf>) -> Result<Self, BtfError> {
        Self::parse_on(bytes, Some(kernel))
    }

    fn parse_on(bytes: Vec<u8>, base: Option<Arc<Btf>>) -> Result<Self, BtfError> {
        if bytes.len() > BYTES_MAX {
            return Err(BtfError::Malformed("longer than 1 GiB"));
        }
        let short = || BtfError::Malformed("the header is too short");
        let magic = bytes.get(..2).ok_or_else(short)?;
        if magic != MAGIC.to_le_bytes() {
            return Err(BtfError::Malformed("the magic number is missing"));
        }
        let number = |at| read_u32(&bytes, at).map(|number| number as usize);
        let header = number(4).ok_or_else(short)?;
        if header < HEADER_BYTES {
            return Err(short());
        }
        let section = |at: usize| {
            let start = header.checked_add(number(at)?)?;
            let end = start.checked_add(number(at + 4)?)?;
            (end <= bytes.len()).then_some(start..end)
        };
        let outside = BtfError::Malformed("a section ends behind the end");
        let types = section(8).ok_or_else(|| outside.clone())?;
        let strings = section(16).ok_or(outside)?;
        let records = read_records(&bytes, types)?;
        let (first_type, first_string) = match &base {
            Some(base) => (
                base.first_type + base.types.len() as u32,
                base.first_string + base.strings.len() as u32,
            ),
            // Type 0 is void and has no record.
            None => (1, 0),
        };
        Ok(Self {
            base,
            types: records,
            strings,
            first_type,
            first_string,
            bytes,
        })
    }

    /// Returns the number of the last type.
    pub fn last_type(&self) -> TypeId {
        TypeId(self.first_type + self.types.len() as u32 - 1)
    }

    pub(crate) fn record(&self, type_id: TypeId) -> Option<(&Self, TypeRecord)> {
        match type_id.0.checked_sub(self.first_type) {
            Some(index) => Some((self, *self.types.get(index as usize)?)),
            None => self.base.as_ref()?.record(type_id),
        }
    }

    /// Returns the kind of a type.
    pub fn kind(&self, type_id: TypeId) -> TypeKind {
        self.record(type_id)
            .map_or(TypeKind::Void, |(_, record)| record.kind())
    }

    /// Returns the name of a type; empty for an unnamed one.
    pub fn name(&self, type_id: TypeId) -> &str {
        self.record(type_id)
            .map_or("", |(within, record)| within.string(record.name_offset))
    }

    fn string(&self, offset: u32) -> &str {
        let Some(own) = offset.checked_sub(self.first_string) else {
            return self.base.as_ref().map_or("", |base| base.string(offset));
        };
        let strings = &self.bytes[self.strings.clone()];
        let tail = strings.get(own as usize..).unwrap_or_default();
        let end = memchr::memchr(0, tail).unwrap_or(0);
        std::str::from_utf8(&tail[..end]).unwrap_or("")
    }

    /// Finds a type by kind and name, the module's own types first.
    ///
    /// # Errors
    ///
    /// There is no such type.
    pub fn find_type(&self, kind: TypeKind, name: &str) -> Result<TypeId, BtfError> {
        self.search_type(kind, name)
            .ok_or_else(|| BtfError::NoType(name.to_owned()))
    }

    fn search_type(&self, kind: TypeKind, name: &str) -> Option<TypeId> {
        let offsets = self.name_offsets(name);
        let is_match = |record: &TypeRecord| {
            record.kind() == kind && offsets.binary_search(&record.name_offset).is_ok()
        };
        match self.types.iter().position(is_match) {
            Some(index) => Some(TypeId(self.first_type + index as u32)),
            None => self.base.as_ref()?.search_type(kind, name),
        }
    }

    /// Offsets at which a name stands among the names, in ascending order. A shorter name may be
    /// the end of a longer one.
    fn name_offsets(&self, name: &str) -> Vec<u32> {
        let mut offsets = match &self.base {
            Some(base) => base.name_offsets(name),
            None => Vec::new(),
        };
        let needle = [name.as_bytes(), b"\0"].concat();
        let strings = &self.bytes[self.strings.clone()];
        let own = memchr::memmem::find_iter(strings, &needle);
        offsets.extend(own.map(|offset| offset as u32 + self.first_string));
        offsets
    }

    /// Follows typedefs and qualifiers to the type that they stand for.
    pub fn resolve(&self, mut type_id: TypeId) -> TypeId {
        for _ in 0..NESTING_MAX {
            match self.record(type_id) {
                Some((_, record)) if is_alias(record.kind()) => type_id = record.referred_type(),
                _ => break,
            }
        }
        type_id
    }

    /// Finds a member of a structure by its path, such as `bi_iter.bi_sector`. Members of unnamed
    /// structures and unions within count as members of the structure.
    ///
    /// # Errors
    ///
    /// There is no such structure or member, or the member is a bit field.
    pub fn find_member(&self, type_name: &str, path: &str) -> Result<Member, BtfError> {
        let mut type_id = match self.search_type(TypeKind::Struct, type_name) {
            Some(type_id) => type_id,
            None => self.find_type(TypeKind::Typedef, type_name)?,
        };
        let mut offset_bytes = 0_u32;
        for name in path.split('.') {
            let missing = || BtfError::NoMember {
                type_name: type_name.to_owned(),
                member: path.to_owned(),
            };
            let member = self
                .member_in(self.resolve(type_id), name, 0)
                .ok_or_else(missing)?;
            offset_bytes = offset_bytes
                .checked_add(member.offset_bytes)
                .ok_or_else(missing)?;
            type_id = member.type_id;
        }
        Ok(Member {
            offset_bytes,
            size_bytes: self.size_bytes(type_id),
            type_id,
        })
    }

    fn member_in(&self, type_id: TypeId, name: &str, nesting: u32) -> Option<Member> {
        let (within, record) = self.record(type_id)?;
        if !matches!(record.kind(), TypeKind::Struct | TypeKind::Union) || nesting > NESTING_MAX {
            return None;
        }
        (0..record.entry_count()).find_map(|index| {
            let [name_offset, member_type, bits] = within.entry(record, index)?;
            let is_bit_field = record.has_kind_flag() && bits >> 24 != 0;
            let bit_offset = if record.has_kind_flag() {
                bits & 0xff_ffff
            } else {
                bits
            };
            let offset_bytes = bit_offset / 8;
            let member_type = TypeId(member_type);
            match within.string(name_offset) {
                "" => {
                    let inner = self.member_in(self.resolve(member_type), name, nesting + 1)?;
                    Some(Member {
                        offset_bytes: inner.offset_bytes.checked_add(offset_bytes)?,
                        ..inner
                    })
                }
                own if own == name && !is_bit_field => Some(Member {
                    offset_bytes,
                    size_bytes: 0,
                    type_id: member_type,
                }),
                _ => None,
            }
        })
    }

    /// Entry of three words behind a record: a member.
    fn entry(&self, record: TypeRecord, index: usize) -> Option<[u32; 3]> {
        let at = record.data as usize + 12 * index;
        Some([
            read_u32(&self.bytes, at)?,
            read_u32(&self.bytes, at + 4)?,
            read_u32(&self.bytes, at + 8)?,
        ])
    }

    /// Type of a parameter of a prototype.
    pub(crate) fn parameter(&self, record: TypeRecord, index: usize) -> Option<TypeId> {
        read_u32(&self.bytes, record.data as usize + 8 * index + 4).map(TypeId)
    }

    fn size_bytes(&self, type_id: TypeId) -> u32 {
        let Some((within, record)) = self.record(self.resolve(type_id)) else {
            return 0;
        };
        match record.kind() {
            TypeKind::Pointer => 8,
            TypeKind::Int
            | TypeKind::Struct
            | TypeKind::Union
            | TypeKind::Enum
            | TypeKind::Enum64
            | TypeKind::Float => record.size_or_type,
            TypeKind::Array => {
                let Some([element, _, count]) = within.entry(record, 0) else {
                    return 0;
                };
                // Arrays of arrays are flat in BTF, except where typedefs stand between.
                match self.kind(self.resolve(TypeId(element))) {
                    TypeKind::Array => 0,
                    _ => self.size_bytes(TypeId(element)).saturating_mul(count),
                }
            }
            _ => 0,
        }
    }

    /// Finds the value of a constant in an enumeration of 32 bits.
    ///
    /// # Errors
    ///
    /// There is no such enumeration or constant.
    pub fn find_enumerator(&self, enumeration: &str, constant: &str) -> Result<u32, BtfError> {
        let type_id = self.find_type(TypeKind::Enum, enumeration)?;
        let value = self.record(type_id).and_then(|(within, record)| {
            (0..record.entry_count()).find_map(|index| {
                let at = record.data as usize + 8 * index;
                let name = within.string(read_u32(&within.bytes, at)?);
                (name == constant).then(|| read_u32(&within.bytes, at + 4))?
            })
        });
        value.ok_or_else(|| BtfError::NoMember {
            type_name: enumeration.to_owned(),
            member: constant.to_owned(),
        })
    }
}

fn is_alias(kind: TypeKind) -> bool {
    matches!(
        kind,
        TypeKind::Typedef
            | TypeKind::Volatile
            | TypeKind::Const
            | TypeKind::Restrict
            | TypeKind::TypeTag
    )
}

fn read_records(bytes: &[u8], types: std::ops::Range<usize>) -> Result<Vec<TypeRecord>, BtfError> {
    let cut = BtfError::Malformed("a type ends behind its section");
    let mut records = Vec::with_capacity(types.len() / 24);
    let mut at = types.start;
    while at < types.end {
        let word = |offset| read_u32(&bytes[..types.end], at + offset).ok_or_else(|| cut.clone());
        let record = TypeRecord {
            name_offset: word(0)?,
            info: word(4)?,
            size_or_type: word(8)?,
            data: (at + 12) as u32,
        };
        if (record.info >> 24 & 31) as usize >= KINDS.len() || record.kind() == TypeKind::Void {
            return Err(BtfError::Malformed("a type is of an unknown kind"));
        }
        let entries = record.entry_count();
        let data_bytes = match record.kind() {
            TypeKind::Int | TypeKind::Variable | TypeKind::DeclarationTag => 4,
            TypeKind::Array => 12,
            TypeKind::Struct | TypeKind::Union | TypeKind::DataSection | TypeKind::Enum64 => {
                12 * entries
            }
            TypeKind::Enum | TypeKind::Prototype => 8 * entries,
            _ => 0,
        };
        at += 12 + data_bytes;
        if at > types.end {
            return Err(cut);
        }
        records.push(record);
    }
    Ok(records)
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests;
