//! Engines of fio that queue or call plain reads and writes of blocks, and send them somewhere
//! else than to the files and devices of this system.

use crate::job::Engine;

/// One of these engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// fio's name of it.
    pub name: &'static str,
    /// Engine of files and devices whose load is the same.
    pub same_load_as: Engine,
    /// What carries its I/Os.
    pub carrier: Carrier,
    /// Its own options, which say where it goes.
    pub(crate) options: &'static [&'static str],
}

/// What carries the I/Os of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The native calls of another operating system, on its files and devices.
    OtherSystem,
    /// A server, as a noun phrase: the cluster and its network.
    Server(&'static str),
    /// Another way to a drive or memory of this machine, as a noun phrase.
    Passage(&'static str),
}

impl Elsewhere {
    /// Whether the I/Os are those of an engine of this system on the same files.
    pub fn is_same_here(&self) -> bool {
        self.carrier == Carrier::OtherSystem
    }

    /// How the load is taken, for the one who reads the result.
    pub fn note(&self) -> String {
        let name = self.name;
        let same = self.same_load_as.name();
        match self.carrier {
            Carrier::OtherSystem => {
                format!(
                    "{name} is of another operating system: the same I/Os are issued as by {same}"
                )
            }
            Carrier::Server(what) | Carrier::Passage(what) => {
                format!("{name}: the drive gets the job's I/Os directly; {what} are not modelled")
            }
        }
    }

    /// Why real storage cannot have it, for a caret.
    pub fn why_not_here(&self) -> String {
        match self.carrier {
            Carrier::OtherSystem => String::new(),
            Carrier::Server(what) => {
                format!("its I/Os go to {what}, and diskperf measures files and devices")
            }
            Carrier::Passage(what) => {
                format!("its I/Os go through {what}, and diskperf's through the kernel")
            }
        }
    }
}

const fn queued(
    name: &'static str,
    carrier: Carrier,
    options: &'static [&'static str],
) -> Elsewhere {
    Elsewhere {
        name,
        same_load_as: Engine::IoUring,
        carrier,
        options,
    }
}

const fn called(
    name: &'static str,
    carrier: Carrier,
    options: &'static [&'static str],
) -> Elsewhere {
    Elsewhere {
        name,
        same_load_as: Engine::Psync,
        carrier,
        options,
    }
}

const CEPH: Carrier = Carrier::Server("the cluster and its network");
const SERVER: Carrier = Carrier::Server("the server and its network");
const PASSTHROUGH: Carrier = Carrier::Passage("commands past the block layer");
const PERSISTENT_MEMORY: Carrier = Carrier::Passage("loads and stores of mapped memory");
const PLUGIN: Carrier = Carrier::Passage("a plug-in and its drivers");

const ALL: &[Elsewhere] = &[
    queued(
        "windowsaio",
        Carrier::OtherSystem,
        &["no_completion_thread"],
    ),
    queued("solarisaio", Carrier::OtherSystem, &[]),
    queued("guasi", Carrier::OtherSystem, &[]),
    queued(
        "rbd",
        CEPH,
        &["clustername", "rbdname", "pool", "clientname", "busy_poll"],
    ),
    queued(
        "rados",
        CEPH,
        &[
            "clustername",
            "pool",
            "clientname",
            "conf",
            "busy_poll",
            "touch_objects",
        ],
    ),
    called("gfapi", SERVER, &["volume", "brick", "single-instance"]),
    queued(
        "gfapi_async",
        SERVER,
        &["volume", "brick", "single-instance"],
    ),
    queued("nbd", SERVER, &["uri"]),
    queued("nfs", SERVER, &["nfs_url"]),
    queued("libiscsi", SERVER, &["initiator"]),
    called(
        "libhdfs",
        SERVER,
        &[
            "namenode",
            "hostname",
            "port",
            "hdfsdirectory",
            "chunk_size",
            "single_instance",
            "hdfs_use_direct",
        ],
    ),
    queued(
        "dfs",
        SERVER,
        &["pool", "cont", "chunk_size", "object_class", "svcl"],
    ),
    called(
        "http",
        SERVER,
        &[
            "https",
            "http_host",
            "http_user",
            "http_pass",
            "http_s3_key",
            "http_s3_keyid",
            "http_s3_region",
            "http_s3_sse_customer_key",
            "http_s3_sse_customer_algorithm",
            "http_s3_storage_class",
            "http_swift_auth_token",
            "http_mode",
            "http_verbose",
        ],
    ),
    queued(
        "io_uring_cmd",
        PASSTHROUGH,
        &[
            "cmd_type",
            "md_per_io_size",
            "pi_act",
            "pi_chk",
            "apptag",
            "apptag_mask",
        ],
    ),
    queued(
        "sg",
        PASSTHROUGH,
        &["hipri", "readfua", "writefua", "sg_write_mode", "stream_id"],
    ),
    queued(
        "xnvme",
        PASSTHROUGH,
        &[
            "hipri",
            "sqthread_poll",
            "xnvme_be",
            "xnvme_async",
            "xnvme_sync",
            "xnvme_admin",
            "xnvme_mem",
            "xnvme_dev_nsid",
            "xnvme_dev_subnqn",
            "xnvme_iovec",
        ],
    ),
    queued(
        "libblkio",
        PASSTHROUGH,
        &[
            "libblkio_driver",
            "libblkio_path",
            "libblkio_pre_connect_props",
            "libblkio_num_entries",
            "libblkio_queue_size",
            "libblkio_pre_start_props",
            "hipri",
            "libblkio_vectored",
            "libblkio_write_zeroes_on_trim",
            "libblkio_wait_mode",
            "libblkio_force_enable_completion_eventfd",
        ],
    ),
    called("dev-dax", PERSISTENT_MEMORY, &[]),
    called("libpmem", PERSISTENT_MEMORY, &[]),
    called("pmemblk", PERSISTENT_MEMORY, &[]),
    queued(
        "external",
        PLUGIN,
        &[
            "spdk_conf",
            "spdk_json_conf",
            "spdk_mem",
            "spdk_single_seg",
            "mem_size_mb",
            "shm_id",
            "mem_mb",
            "enable_sgl",
            "hostnqn",
            "pi_act",
            "pi_chk",
            "md_per_io_size",
            "apptag",
            "apptag_mask",
            "digest_enable",
            "enable_vmd",
            "initial_zone_reset",
            "zone_append",
            "print_qid_mappings",
            "log_flags",
            "disable_pcie_sgl_merge",
            "spdk_tracing",
            "spdk_rpc_listen_addr",
        ],
    ),
];

/// The engine of this name; of `external:PATH` whatever the path is.
pub(crate) fn named(name: &str) -> Option<&'static Elsewhere> {
    let name = match name.split_once(':') {
        Some(("external", _)) => "external",
        _ => name,
    };
    ALL.iter().find(|engine| engine.name == name)
}

/// The first engine that has an option of this name.
pub(crate) fn with_option(option: &str) -> Option<&'static str> {
    let engine = ALL.iter().find(|engine| engine.options.contains(&option));
    engine.map(|engine| engine.name)
}
