use cq_core::setup::Gid;

use super::*;

const LID: u16 = 5;
const GID: Gid = Gid([6; 16]);
const HERE: Port = Port { lid: LID, gid: GID, first_number: 0 };

#[test]
fn c07_an_address_that_leads_nowhere_is_refused() {
    let port = HERE.attributes();
    let (local, global) = (AddressVector::of(&port, GID, LID), AddressVector::of(&port, GID, 0));
    let route = global.route.unwrap();
    let other = Gid([7; 16]);
    for (address, wrong) in [
        (AddressVector { port: 0, ..local }, AddressError::NoSuchPort { port: 0 }),
        (AddressVector { port: 2, ..global }, AddressError::NoSuchPort { port: 2 }),
        (AddressVector { sl: 16, ..local }, AddressError::NoSuchLevel { sl: 16 }),
        (AddressVector { lid: 0, ..local }, AddressError::UnknownLid { lid: 0 }),
        (AddressVector { lid: 9, ..global }, AddressError::UnknownLid { lid: 9 }),
        (AddressVector::of(&port, other, 0), AddressError::UnknownGid { gid: other }),
        (
            AddressVector { route: Some(GlobalRoute { sgid_index: 1, ..route }), ..local },
            AddressError::NoSuchGid { index: 1 },
        ),
    ] {
        assert_eq!(check(&address, &HERE), Err(wrong), "{wrong}");
    }
    for address in [local, global, AddressVector { sl: 15, lid: LID, ..global }] {
        assert_eq!(check(&address, &HERE), Ok(()));
    }
}
