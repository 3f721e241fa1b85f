//! Links: listed by note (`backlinks`) and for the whole vault (`graph`), written in the vault's style (`make_link`), and
//! set in a note (`set_link`).

pub(super) mod backlinks;
pub(super) mod graph;
pub(super) mod make_link;
pub(super) mod set_link;
