//! Types built by hand, as `bpf/btf.rst` describes them.

use super::*;
use proptest::prelude::*;

const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const CONST: u32 = 10;
const PROTOTYPE: u32 = 13;
/// Structure whose members may be bit fields.
const STRUCT_OF_BITS: u32 = STRUCT | 1 << 7;

/// Growing BTF of a kernel or of a module.
#[derive(Default)]
struct Builder {
    types: Vec<u8>,
    strings: Vec<u8>,
    type_count: u32,
    first_type: u32,
    first_string: u32,
}

impl Builder {
    fn kernel() -> Self {
        Self {
            strings: vec![0],
            first_type: 1,
            ..Self::default()
        }
    }

    fn module(kernel: &Btf) -> Self {
        Self {
            first_type: kernel.last_type().0 + 1,
            first_string: kernel.strings.len() as u32,
            ..Self::default()
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let offset = self.strings.len() as u32 + self.first_string;
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
        offset
    }

    /// Adds a type and returns its number.
    fn add(&mut self, name: &str, info: u32, size_or_type: u32, data: &[u32]) -> u32 {
        let name = self.string(name);
        for word in [name, info, size_or_type].iter().chain(data) {
            self.types.extend(word.to_le_bytes());
        }
        self.type_count += 1;
        self.first_type + self.type_count - 1
    }

    fn add_kind(&mut self, kind: u32, name: &str, size_or_type: u32) -> u32 {
        self.add(name, kind << 24, size_or_type, &[])
    }

    fn add_int(&mut self, name: &str, bytes: u32) -> u32 {
        self.add(name, INT << 24, bytes, &[bytes * 8])
    }

    /// Members are names, types and offsets in bits.
    fn add_struct(&mut self, kind: u32, name: &str, members: &[(&str, u32, u32)]) -> u32 {
        let mut data = Vec::new();
        for (name, member, bits) in members {
            data.extend([self.string(name), *member, *bits]);
        }
        self.add(name, kind << 24 | members.len() as u32, 64, &data)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, types, types, strings] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend(&self.types);
        bytes.extend(&self.strings);
        bytes
    }
}

/// Kernel with a bio whose sector lies in an unnamed union of a nested structure, with a flag of
/// one bit, an array, an enumeration and two tracepoints.
fn kernel() -> Builder {
    let mut kernel = Builder::kernel();
    let u32_type = kernel.add_int("unsigned int", 4);
    let u64_type = kernel.add_int("long long unsigned int", 8);
    let sector = kernel.add_kind(TYPEDEF, "sector_t", u64_type);
    let union = kernel.add_struct(
        UNION,
        "",
        &[("bi_sector", sector, 0), ("other", u32_type, 32)],
    );
    let iter = kernel.add_struct(
        STRUCT,
        "bvec_iter",
        &[("before", u64_type, 0), ("", union, 64)],
    );
    let qualified = kernel.add_kind(CONST, "", iter);
    let array = kernel.add("", ARRAY << 24, 0, &[u32_type, u32_type, 3]);
    let bio = kernel.add_struct(
        STRUCT_OF_BITS,
        "bio",
        &[
            ("bi_flag", u32_type, 1 << 24 | 5),
            ("bi_opf", u32_type, 32),
            ("bi_iter", qualified, 128),
            ("bi_words", array, 256),
        ],
    );
    let pointer = kernel.add_kind(POINTER, "", bio);
    let void = kernel.add_kind(POINTER, "", 0);
    let parameters = [0, void, 0, u32_type, 0, pointer, 0, u32_type];
    let prototype = kernel.add("", PROTOTYPE << 24 | 4, 0, &parameters);
    let probe = kernel.add_kind(POINTER, "", prototype);
    kernel.add_kind(TYPEDEF, "btf_trace_block_split", probe);
    let names = [kernel.string("__REQ_SYNC"), kernel.string("__REQ_META")];
    kernel.add(
        "req_flag_bits",
        ENUM << 24 | 2,
        4,
        &[names[0], 11, names[1], 12],
    );
    kernel
}

#[test]
fn a_member_in_unnamed_unions_has_the_sum_of_the_offsets() {
    let btf = Btf::parse(kernel().to_bytes()).unwrap();
    let sector = btf.find_member("bio", "bi_iter.bi_sector").unwrap();
    assert_eq!((sector.offset_bytes, sector.size_bytes), (16 + 8, 8));
    let flags = btf.find_member("bio", "bi_opf").unwrap();
    assert_eq!((flags.offset_bytes, flags.size_bytes), (4, 4));
    let words = btf.find_member("bio", "bi_words").unwrap();
    assert_eq!((words.offset_bytes, words.size_bytes), (32, 12));
    for missing in ["bi_flag", "bi_iter.bi_size", "before", ""] {
        let error = btf.find_member("bio", missing).unwrap_err();
        assert!(
            matches!(error, BtfError::NoMember { .. }),
            "{missing}: {error}"
        );
    }
    let error = btf.find_member("request", "tag").unwrap_err();
    assert_eq!(error, BtfError::NoType("request".to_owned()));
}

#[test]
fn an_argument_is_found_by_its_type() {
    let btf = Btf::parse(kernel().to_bytes()).unwrap();
    let split = btf.find_tracepoint("block_split").unwrap();
    assert_eq!(split.argument_count(), 3);
    assert_eq!(split.find_argument(&btf, "struct bio *"), Ok(1));
    assert_eq!(split.find_argument(&btf, "unsigned int"), Ok(0));
    assert_eq!(split.find_repeated_argument(&btf, "unsigned int", 1), Ok(2));
    assert_eq!(split.find_last_argument(&btf, "unsigned int"), Ok(2));
    assert_eq!(split.find_last_argument(&btf, "struct bio *"), Ok(1));
    assert!(split.find_last_argument(&btf, "void *").is_err());
    assert!(split.find_argument(&btf, "struct request *").is_err());
    assert!(btf.find_tracepoint("block_rq_issue").is_err());
}

#[test]
fn constants_have_their_values() {
    let btf = Btf::parse(kernel().to_bytes()).unwrap();
    assert_eq!(btf.find_enumerator("req_flag_bits", "__REQ_META"), Ok(12));
    assert!(btf.find_enumerator("req_flag_bits", "__REQ_FUA").is_err());
}

#[test]
fn a_module_refers_to_types_and_names_of_the_kernel() {
    let kernel_btf = Arc::new(Btf::parse(kernel().to_bytes()).unwrap());
    let bio = kernel_btf.find_type(TypeKind::Struct, "bio").unwrap();
    let mut module = Builder::module(&kernel_btf);
    let pointer = module.add_kind(POINTER, "", bio.0);
    let own = module.add_struct(
        STRUCT,
        "transaction_s",
        &[("t_tid", 1, 64), ("bio", pointer, 0)],
    );
    // A member that takes its name from the kernel's names.
    let name = kernel_btf.name_offsets("bi_opf")[0];
    let shared = module.add("shared", STRUCT << 24 | 1, 8, &[name, 1, 96]);
    let module = Btf::parse_module(module.to_bytes(), Arc::clone(&kernel_btf)).unwrap();
    assert!(own > kernel_btf.last_type().0);
    assert_eq!(
        module.find_type(TypeKind::Struct, "transaction_s"),
        Ok(TypeId(own))
    );
    assert_eq!(
        module
            .find_member("transaction_s", "t_tid")
            .unwrap()
            .offset_bytes,
        8
    );
    assert_eq!(
        module
            .find_member("transaction_s", "t_tid")
            .unwrap()
            .size_bytes,
        4
    );
    assert_eq!(module.name(TypeId(shared)), "shared");
    assert_eq!(
        module.find_member("shared", "bi_opf").unwrap().offset_bytes,
        12
    );
    assert_eq!(module.describe_type(TypeId(pointer)), "struct bio *");
    assert_eq!(module.find_member("bio", "bi_opf").unwrap().offset_bytes, 4);
    assert!(kernel_btf.find_member("transaction_s", "t_tid").is_err());
}

#[test]
fn a_cycle_of_types_ends() {
    let mut cyclic = Builder::kernel();
    cyclic.add_kind(TYPEDEF, "turning", 2);
    cyclic.add_kind(CONST, "", 1);
    cyclic.add_struct(STRUCT, "nested", &[("", 3, 0)]);
    cyclic.add_kind(POINTER, "", 4);
    let btf = Btf::parse(cyclic.to_bytes()).unwrap();
    assert!(btf.find_member("turning", "member").is_err());
    assert!(btf.find_member("nested", "member").is_err());
    assert!(btf.describe_type(TypeId(4)).contains('*'));
}

#[test]
fn bytes_that_are_no_btf_are_an_error() {
    let whole = kernel().to_bytes();
    for length in 0..whole.len() {
        // Without its end there is a section that the bytes lack.
        assert!(Btf::parse(whole[..length].to_vec()).is_err(), "{length}");
    }
    assert!(Btf::parse(whole).is_ok());
}

proptest! {
    #[test]
    fn damaged_types_end_without_a_panic(
        changes in prop::collection::vec((24..400_usize, any::<u8>()), 1..8)
    ) {
        let mut bytes = kernel().to_bytes();
        for (at, value) in changes {
            let at = at.min(bytes.len() - 1);
            bytes[at] = value;
        }
        if let Ok(btf) = Btf::parse(bytes) {
            for name in ["bio", "bvec_iter", "request"] {
                let _ = btf.find_member(name, "bi_iter.bi_sector");
                let _ = btf.find_member(name, "bi_words");
            }
            if let Ok(found) = btf.find_tracepoint("block_split") {
                let _ = found.find_argument(&btf, "struct bio *");
            }
            let _ = btf.find_enumerator("req_flag_bits", "__REQ_META");
        }
    }
}
