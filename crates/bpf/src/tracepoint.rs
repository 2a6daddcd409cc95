//! Arguments of tracepoints, which differ between kernels in number and order.

use crate::btf::{Btf, BtfError, TypeId, TypeKind};

/// Prototype of a tracepoint, as a program's context has its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    tracepoint: String,
    arguments: Vec<TypeId>,
}

impl Btf {
    /// Finds the prototype of a tracepoint.
    ///
    /// # Errors
    ///
    /// This kernel does not have the tracepoint, or only in a module.
    pub fn find_tracepoint(&self, tracepoint: &str) -> Result<Prototype, BtfError> {
        let name = format!("btf_trace_{tracepoint}");
        let missing = || BtfError::NoType(name.clone());
        let typedef = self.find_type(TypeKind::Typedef, &name)?;
        let (_, pointer) = self.record(self.resolve(typedef)).ok_or_else(missing)?;
        let (within, prototype) = self.record(pointer.referred_type()).ok_or_else(missing)?;
        // The first parameter is the probe's own data, which the context lacks.
        let arguments =
            (1..prototype.entry_count()).map(|index| within.parameter(prototype, index));
        Ok(Prototype {
            tracepoint: tracepoint.to_owned(),
            arguments: arguments.collect::<Option<_>>().ok_or_else(missing)?,
        })
    }

    /// Describes a type as C does, without qualifiers: `struct bio *`, `unsigned int`.
    pub fn describe_type(&self, type_id: TypeId) -> String {
        let mut text = String::new();
        let (mut type_id, mut pointers) = (type_id, 0);
        // A pointer to a pointer is no argument of a tracepoint; more levels are a cycle.
        for _ in 0..32 {
            match (self.kind(type_id), self.record(type_id)) {
                (TypeKind::Pointer, Some((_, record))) => {
                    pointers += 1;
                    type_id = record.referred_type();
                }
                (
                    TypeKind::Const | TypeKind::Volatile | TypeKind::Restrict | TypeKind::TypeTag,
                    Some((_, record)),
                ) => type_id = record.referred_type(),
                _ => break,
            }
        }
        text.push_str(match self.kind(type_id) {
            TypeKind::Struct => "struct ",
            TypeKind::Union => "union ",
            TypeKind::Enum | TypeKind::Enum64 => "enum ",
            TypeKind::Void => "void",
            _ => "",
        });
        text.push_str(self.name(type_id));
        if pointers > 0 {
            text.push(' ');
        }
        text.extend(std::iter::repeat_n('*', pointers));
        text
    }
}

impl Prototype {
    /// Returns the number of arguments.
    pub fn argument_count(&self) -> usize {
        self.arguments.len()
    }

    /// Finds the first argument of a type in C, such as `struct bio *`.
    ///
    /// # Errors
    ///
    /// There is no such argument.
    pub fn find_argument(&self, btf: &Btf, type_in_c: &str) -> Result<usize, BtfError> {
        self.find_repeated_argument(btf, type_in_c, 0)
    }

    /// Finds the last argument of a type in C.
    ///
    /// # Errors
    ///
    /// There is no such argument.
    pub fn find_last_argument(&self, btf: &Btf, type_in_c: &str) -> Result<usize, BtfError> {
        let is_match = |index: &usize| btf.describe_type(self.arguments[*index]) == type_in_c;
        let last = (0..self.arguments.len()).rfind(is_match);
        last.ok_or_else(|| self.no_argument(type_in_c))
    }

    fn no_argument(&self, type_in_c: &str) -> BtfError {
        BtfError::NoArgument {
            tracepoint: self.tracepoint.clone(),
            argument: type_in_c.to_owned(),
        }
    }

    /// Finds one of several arguments of the same type; `earlier` of them come before it.
    ///
    /// # Errors
    ///
    /// There are not as many such arguments.
    pub fn find_repeated_argument(
        &self,
        btf: &Btf,
        type_in_c: &str,
        earlier: usize,
    ) -> Result<usize, BtfError> {
        let is_match = |index: &usize| btf.describe_type(self.arguments[*index]) == type_in_c;
        let mut matches = (0..self.arguments.len()).filter(is_match);
        matches
            .nth(earlier)
            .ok_or_else(|| self.no_argument(type_in_c))
    }
}
