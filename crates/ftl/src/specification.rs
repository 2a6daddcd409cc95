//! Specification of a translation layer, and the errors of an invalid one.

use crate::features::Features;

/// Geometry of superblocks. A superblock is one block of every plane of every die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Number of superblocks of the drive.
    pub superblocks: u32,
    /// Number of dies that a superblock spans.
    pub dies: u32,
    /// Number of mapping units in one program of a die.
    pub program_units: u32,
    /// Number of program units of a superblock on each die.
    pub rows: u32,
}

impl Geometry {
    /// Returns the number of mapping units in a superblock.
    pub fn superblock_units(&self) -> u32 {
        self.dies * self.program_units * self.rows
    }
}

/// Policy that chooses the victim of a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Greedy: the superblock with the fewest valid mapping units is the victim.
    Greedy,
    /// Random choices: the victim has the fewest valid mapping units among this many superblocks
    /// drawn at random.
    Choices(u32),
    /// FIFO: the superblock that was closed first is the victim.
    Fifo,
    /// Cost-benefit: the superblock with the greatest (1 - u) age / 2u is the victim, where u is
    /// its valid share.
    CostBenefit,
}

/// Write frontier for the data that garbage collection moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separation {
    /// Moved data share the host's write frontier of the victim's stream.
    Mixed,
    /// All moved data share one write frontier, separate from the host's.
    Apart,
    /// Moved data have one write frontier per stream, separate from the host's.
    ByStream,
}

/// Specification of a translation layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Specification {
    /// Geometry of the superblocks.
    pub geometry: Geometry,
    /// Number of logical units that the host can map.
    pub logical_units: u32,
    /// Policy that chooses victims of garbage collection.
    pub policy: Policy,
    /// Write frontier for data that garbage collection moves.
    pub separation: Separation,
    /// Number of host streams (placement identifiers), at least 1.
    pub streams: u32,
    /// Number of free superblocks below which garbage collection begins.
    pub soft_free: u32,
    /// Number of free superblocks below which the host waits for garbage collection.
    pub hard_free: u32,
    /// Difference of erase counts at which static wear levelling begins; `None` disables it.
    pub wear_threshold: Option<u32>,
    /// Seed of the layer's random choices.
    pub seed: u64,
}

/// Reason why a translation layer cannot work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Impossible {
    /// A count that must be at least 1 is 0; holds its name.
    Zero(&'static str),
    /// The number of physical units exceeds the range of map entries.
    TooLarge(u64),
    /// The drive has no over-provisioning.
    NoSpare {
        /// Number of logical units that the host can map.
        logical: u64,
        /// Number of physical units of the drive.
        physical: u64,
    },
    /// The free reserve and the open superblocks use up the over-provisioning, so garbage
    /// collection would deadlock.
    Deadlock {
        /// Soft threshold of free superblocks.
        free: u32,
        /// Number of write frontiers, each with an open superblock.
        open: u32,
        /// Number of mapping units in superblocks that are neither free nor open.
        closed: u64,
        /// Number of logical units that the host can map.
        logical: u64,
    },
    /// The hard threshold is so low that the host could take the superblock that garbage collection
    /// needs.
    HardTooLow {
        /// Hard threshold of free superblocks.
        hard: u32,
        /// Minimum hard threshold of free superblocks that works.
        needed: u32,
    },
    /// The main area has fewer than 2 bits per cell, so it cannot have an SLC cache.
    FewBits(u32),
    /// A program unit cannot be divided into whole SLC program units.
    UnevenCache {
        /// Number of mapping units in a program.
        program_units: u32,
        /// Bits per cell of the main area.
        bits: u32,
    },
    /// The number of dies is not a multiple of the parity stripe, or a stripe has no data.
    UnevenParity {
        /// Number of program units per parity stripe.
        stripe: u32,
        /// Number of dies of the drive.
        dies: u32,
    },
    /// The precondition state covers more mapping units than the drive has.
    Overfilled {
        /// Number of mapping units of the precondition state.
        filled: u32,
        /// Number of logical units that the host can map.
        logical: u32,
    },
    /// A share of the precondition state is not within 0 to 100 %.
    NoShare,
    /// The soft threshold is not above the hard one, so background garbage collection would begin
    /// too late.
    SoftBelowHard {
        /// Soft threshold of free superblocks.
        soft: u32,
        /// Hard threshold of free superblocks.
        hard: u32,
    },
}

impl std::fmt::Display for Impossible {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Zero(value) => write!(formatter, "{value} is 0: give at least 1"),
            Self::TooLarge(value) => write!(
                formatter,
                "{value} physical units: a map of 4-byte entries holds {max}",
                max = u32::MAX - 1
            ),
            Self::NoSpare { logical, physical } => write!(
                formatter,
                "{logical} logical units of {physical} physical ones leave no spare: collection could never free a superblock"
            ),
            Self::Deadlock {
                free,
                open,
                closed,
                logical,
            } => write!(
                formatter,
                "{free} free and {open} open superblocks leave {closed} units for {logical} logical ones: \
         collection would deadlock"
            ),
            Self::HardTooLow { hard, needed } => write!(
                formatter,
                "a hard threshold of {hard} free superblocks: collection needs {needed} to move data to"
            ),
            Self::FewBits(value) => write!(
                formatter,
                "a cache in superblocks of {value} bits a cell: give 2, 3 (TLC) or 4 (QLC)"
            ),
            Self::UnevenCache {
                program_units,
                bits,
            } => write!(
                formatter,
                "a program unit of {program_units} units is not {bits} whole ones of one bit a cell"
            ),
            Self::UnevenParity { stripe, dies } => write!(
                formatter,
                "parity of {stripe} program units over {dies} dies: give 2 or more that divide the dies"
            ),
            Self::Overfilled { filled, logical } => write!(
                formatter,
                "a past of {filled} units on a drive of {logical}"
            ),
            Self::NoShare => formatter
                .write_str("a past whose share of writes or units is not within 0 to 100 %"),
            Self::SoftBelowHard { soft, hard } => write!(
                formatter,
                "the soft threshold ({soft}) is not above the hard one ({hard})"
            ),
        }
    }
}

impl std::error::Error for Impossible {}

impl Specification {
    /// Returns the number of write frontiers for garbage collection and wear levelling.
    pub(crate) fn moving_frontiers(&self) -> u32 {
        let collection = match self.separation {
            Separation::Mixed => 0,
            Separation::Apart => 1,
            Separation::ByStream => self.streams,
        };
        collection + u32::from(self.wear_threshold.is_some())
    }

    /// Validates that the translation layer can work without end.
    ///
    /// # Errors
    /// With the first parameter that makes it impossible.
    pub fn check(&self) -> Result<(), Impossible> {
        self.check_with(&Features::default())
    }

    /// Validates that the translation layer can work without end with these features.
    ///
    /// # Errors
    /// With the first parameter that makes it impossible.
    pub fn check_with(&self, features: &Features) -> Result<(), Impossible> {
        self.check_counts()?;
        features.check(self)?;
        let (units, superblocks) = (
            u64::from(features.data_units(self.geometry.superblock_units())),
            self.geometry.superblocks,
        );
        let (physical, logical) = (
            units * u64::from(superblocks),
            u64::from(self.logical_units) + u64::from(features.system_units),
        );
        if logical >= physical {
            return Err(Impossible::NoSpare { logical, physical });
        }
        let (hard, soft) = (self.hard_free, self.soft_free);
        let needed = self.moving_frontiers().max(1) + 1;
        if hard < needed {
            return Err(Impossible::HardTooLow { hard, needed });
        }
        if soft <= hard {
            return Err(Impossible::SoftBelowHard { soft, hard });
        }
        let open = (self.streams)
            .saturating_add(self.moving_frontiers())
            .saturating_add(features.frontiers());
        let taken = soft
            .saturating_add(open)
            .saturating_add(features.fixed_superblocks());
        let closed = units * u64::from(superblocks.saturating_sub(taken));
        if closed <= logical {
            return Err(Impossible::Deadlock {
                free: soft,
                open,
                closed,
                logical,
            });
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), Impossible> {
        let Geometry {
            superblocks,
            dies,
            program_units,
            rows,
        } = self.geometry;
        let choices = if let Policy::Choices(d) = self.policy {
            d
        } else {
            1
        };
        for (name, count) in [
            ("superblocks", superblocks),
            ("dies", dies),
            ("units of a program", program_units),
            ("rows", rows),
            ("logical units (a spare of 1)", self.logical_units),
            ("streams", self.streams),
            ("choices", choices),
        ] {
            if count == 0 {
                return Err(Impossible::Zero(name));
            }
        }
        let physical = [dies, program_units, rows]
            .iter()
            .fold(u64::from(superblocks), |product, &count| {
                product.saturating_mul(u64::from(count))
            });
        if physical >= u64::from(u32::MAX) {
            return Err(Impossible::TooLarge(physical));
        }
        Ok(())
    }
}
