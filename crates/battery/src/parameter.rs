//! Parameters of a program. Each has a name, a value, a unit and a range. One list serves printing,
//! checking and setting.

use crate::load::distribution::{self, AccessDistribution};
use diskperf_timeline::units::{GIB, SizeError, parse_count, parse_size};

/// Maximum length of a program's call, in bytes. One read(2) returns less than 2 GiB.
const CALL_BYTES_MAX: u64 = GIB;

/// Parameter of a program as a user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the parameter, with its unit, as in `call_bytes`.
    pub parameter_name: &'static str,
    /// Value of the parameter, as the text that sets it.
    pub value: String,
    /// Effect of the parameter on the program.
    pub description: &'static str,
    /// Description of the values that the parameter permits.
    pub allowed_values: String,
}

/// Parameter of a program, with a reference to its value.
pub(crate) struct ParameterField<'a> {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) value: ParameterValue<'a>,
}

pub(crate) enum ParameterValue<'a> {
    /// Parameter value that is a number of bytes, typed as `8192` or `8K`, with its minimum and
    /// maximum.
    ByteCount(&'a mut u64, u64, u64),
    /// Parameter value that is a whole number, with its minimum and maximum.
    Count(&'a mut u64, u64, u64),
    /// Parameter value that is a share from 0 to 1.
    Share(&'a mut f64),
    NamedChoice(&'a mut dyn NamedChoice),
    /// Parameter value that is a selection of one or more names of a closed set.
    NameSubset(&'a mut NameSubset),
    /// Parameter value that is a distribution of request sizes.
    SizeMix(&'a mut SizeMix),
    /// Parameter value that is a distribution of requests over an area.
    Distribution(&'a mut AccessDistribution),
}

/// Closed set of named values, with a current value.
pub(crate) trait NamedChoice {
    /// Returns all names of the closed set, in order.
    fn choice_names(&self) -> &'static [&'static str];
    fn current_index(&self) -> usize;
    /// Selects the value with this index, which is below the number of names.
    fn choose_index(&mut self, index: usize);
}

/// Declares an enum as a closed set of values that are chosen by name.
macro_rules! choices {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $type { $($(#[$variant_doc])* $variant,)* }

        impl $crate::parameter::NamedChoice for $type {
            fn choice_names(&self) -> &'static [&'static str] {
                &[$($name,)*]
            }
            fn current_index(&self) -> usize {
                *self as usize
            }
            fn choose_index(&mut self, index: usize) {
                *self = [$(Self::$variant,)*][index];
            }
        }
    };
}
pub(crate) use choices;

/// Reason why a parameter was not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The program has no parameter of this name.
    #[error("program {program} has no parameter `{name}`; {}", nearest.as_deref().map_or_else(|| format!("it has {}", known.join(", ")), |near| format!("did you mean `{near}`?")))]
    UnknownParameter {
        /// Name of the program.
        program: String,
        /// Parameter name that the user gave.
        name: String,
        /// Most similar parameter name, if any is similar.
        nearest: Option<String>,
        /// Names of all parameters of the program.
        known: Vec<&'static str>,
    },
    /// No program of the suite has a parameter of this name.
    #[error("no program of {suite} has a parameter `{name}`; {}", nearest.as_deref().map_or_else(|| format!("there are program.{}", known.join(", program.")), |near| format!("did you mean `program.{near}`?")))]
    UnknownToAllPrograms {
        /// Name of the suite whose programs lack the parameter.
        suite: String,
        /// Parameter name that the user gave.
        name: String,
        /// Most similar parameter name, if any is similar.
        nearest: Option<String>,
        /// Names of the parameters that programs of the suite have.
        known: Vec<&'static str>,
    },
    /// The value cannot be parsed or is out of range.
    #[error("{program}.{name} cannot be `{value}`: it takes {allowed}")]
    InvalidValue {
        /// Name of the program.
        program: String,
        /// Name of the parameter.
        name: &'static str,
        /// Value that the user gave.
        value: String,
        /// Description of the values that the parameter permits.
        allowed: String,
    },
    /// The parameters do not fit together, or do not fit the size.
    #[error("{program}: {reason}")]
    IncompatibleValue {
        /// Name of the program.
        program: String,
        /// Description of the conflict and of its remedy.
        reason: String,
    },
}

impl<'a> ParameterField<'a> {
    /// Creates the parameter `call_bytes`, the length of a program's calls.
    pub(crate) fn new_call_bytes(value: &'a mut u64, meaning: &'static str) -> Self {
        Self {
            name: "call_bytes",
            description: meaning,
            value: ParameterValue::ByteCount(value, 1, CALL_BYTES_MAX),
        }
    }

    pub(crate) fn describe_parameter(&self) -> Parameter {
        Parameter {
            parameter_name: self.name,
            value: self.value.format_value(),
            description: self.description,
            allowed_values: self.value.describe_allowed(),
        }
    }
}

impl ParameterValue<'_> {
    fn format_value(&self) -> String {
        match self {
            Self::ByteCount(value, ..) | Self::Count(value, ..) => value.to_string(),
            Self::Share(value) => value.to_string(),
            Self::NamedChoice(choice) => choice.choice_names()[choice.current_index()].to_owned(),
            Self::NameSubset(subset) => subset.format(),
            Self::SizeMix(mix) => mix.format(),
            Self::Distribution(distribution) => distribution.format_distribution(),
        }
    }

    fn describe_allowed(&self) -> String {
        match self {
            Self::ByteCount(_, low, high) => format!("a size from {low} to {high} bytes"),
            Self::Count(_, low, high) => format!("a whole number from {low} to {high}"),
            Self::Share(_) => "a share from 0 to 1".to_owned(),
            Self::NamedChoice(choice) => choice.choice_names().join(", "),
            Self::NameSubset(subset) => {
                format!("some of {}, joined by +", subset.all_names.join(", "))
            }
            Self::SizeMix(_) => {
                "a size, or BYTES:WEIGHT pairs, as 4096:70,8192:30, each size a multiple of 512"
                    .to_owned()
            }
            Self::Distribution(_) => distribution::ALLOWED_VALUES.to_owned(),
        }
    }

    /// Sets the value from text. Returns `None` if the text cannot be parsed or is not permitted.
    pub(crate) fn parse_value(&mut self, text: &str) -> Option<()> {
        match self {
            Self::ByteCount(value, low, high) => {
                let bytes = parse_size(text).ok()?;
                (*low..=*high).contains(&bytes).then(|| **value = bytes)
            }
            Self::Count(value, low, high) => {
                let count = parse_count(text)?;
                (*low..=*high).contains(&count).then(|| **value = count)
            }
            Self::Share(value) => {
                let share: f64 = text.parse().ok()?;
                (0.0..=1.0).contains(&share).then(|| **value = share)
            }
            Self::NamedChoice(choice) => {
                let index = choice
                    .choice_names()
                    .iter()
                    .position(|name| *name == text)?;
                choice.choose_index(index);
                Some(())
            }
            Self::NameSubset(subset) => subset.parse_selected(text),
            Self::SizeMix(mix) => {
                **mix = SizeMix::parse_mix(text)?;
                Some(())
            }
            Self::Distribution(distribution) => {
                **distribution = AccessDistribution::parse_distribution(text)?;
                Some(())
            }
        }
    }
}

/// Selection of names from a closed set, such as `create+stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameSubset {
    all_names: &'static [&'static str],
    selected_bits: u32,
}

impl NameSubset {
    pub(crate) fn select_all(names: &'static [&'static str]) -> Self {
        let chosen = (1 << names.len()) - 1;
        Self {
            all_names: names,
            selected_bits: chosen,
        }
    }

    pub(crate) fn is_selected(&self, index: usize) -> bool {
        self.selected_bits & (1 << index) != 0
    }

    fn format(&self) -> String {
        let chosen = (0..self.all_names.len()).filter(|index| self.is_selected(*index));
        let chosen: Vec<&str> = chosen.map(|index| self.all_names[index]).collect();
        chosen.join("+")
    }

    fn parse_selected(&mut self, text: &str) -> Option<()> {
        let place = |name: &str| {
            self.all_names
                .iter()
                .position(|known| *known == name.trim())
        };
        let mut bits = text
            .split('+')
            .map(|name| place(name).map(|index| 1 << index));
        self.selected_bits = bits.try_fold(0, |chosen, bit| bit.map(|bit: u32| chosen | bit))?;
        Some(())
    }
}

/// Distribution of request sizes, as pairs of bytes and weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SizeMix(Vec<(u64, u64)>);

impl SizeMix {
    pub(crate) fn new(weights: &[(u64, u64)]) -> Self {
        Self(weights.to_vec())
    }

    fn parse_mix(text: &str) -> Option<Self> {
        let pair = |pair: &str| {
            let (bytes, weight) = pair.split_once(':').unwrap_or((pair, "1"));
            let bytes = parse_size(bytes).map_err(|_: SizeError| ()).ok()?;
            let weight: u64 = weight.trim().parse().ok()?;
            let sane = bytes > 0 && bytes % 512 == 0 && bytes <= 1 << 30 && weight < 1 << 32;
            sane.then_some((bytes, weight))
        };
        let weights: Vec<_> = text.split(',').map(pair).collect::<Option<_>>()?;
        weights
            .iter()
            .any(|(_, weight)| *weight > 0)
            .then_some(Self(weights))
    }

    /// Returns the only request size, or `None` if the distribution has several.
    #[inline]
    pub(crate) fn only_size(&self) -> Option<u64> {
        match self.0[..] {
            [(bytes, _)] => Some(bytes),
            _ => None,
        }
    }

    fn format(&self) -> String {
        if let Some(bytes) = self.only_size() {
            return bytes.to_string();
        }
        let pairs: Vec<_> = self
            .0
            .iter()
            .map(|(bytes, weight)| format!("{bytes}:{weight}"))
            .collect();
        pairs.join(",")
    }

    /// Iterates over all request sizes.
    pub(crate) fn size_bytes_values(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().map(|(bytes, _)| *bytes)
    }

    /// Returns the largest request size, in bytes.
    pub(crate) fn size_bytes_max(&self) -> u64 {
        self.0.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0)
    }

    /// Returns the sum of all weights of the size distribution.
    pub(crate) fn weight_total(&self) -> u64 {
        self.0.iter().map(|(_, weight)| weight).sum()
    }

    /// Returns the request size at a point below the total weight, where the sizes follow each
    /// other with their weights.
    pub(crate) fn size_bytes_at_weight(&self, point: u64) -> u64 {
        let mut left = point;
        for (bytes, weight) in &self.0 {
            if left < *weight {
                return *bytes;
            }
            left -= weight;
        }
        self.size_bytes_max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_read_back() {
        let mix = SizeMix::parse_mix("4K:70,8192:30").unwrap();
        assert_eq!(mix.format(), "4096:70,8192:30");
        assert_eq!((mix.weight_total(), mix.size_bytes_max()), (100, 8192));
        assert_eq!(
            [
                mix.size_bytes_at_weight(0),
                mix.size_bytes_at_weight(69),
                mix.size_bytes_at_weight(70),
                mix.size_bytes_at_weight(99)
            ],
            [4096, 4096, 8192, 8192]
        );
        assert_eq!(SizeMix::parse_mix("4K").unwrap().format(), "4096");
        for text in ["", "4096:0", "100:1", "4096:x", "4096:1,"] {
            assert_eq!(SizeMix::parse_mix(text), None, "{text}");
        }
    }
}
