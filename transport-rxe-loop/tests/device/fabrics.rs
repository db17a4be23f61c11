//! Two fabrics in one process have nothing to do with each other.

use transport_rxe_loop::{Context, CreateError, OpenOptions, QpInit};

fn open(which: &str) -> Context {
    let name = format!("{which}-{}", std::process::id());
    OpenOptions::new().fabric(&name).open("loop0").unwrap()
}

#[test]
fn x01_what_is_of_one_fabric_is_not_taken_in_another() {
    let (here, there) = (open("here"), open("there"));
    let (pd, cq) = (here.alloc_pd(), here.create_cq(4, None).unwrap());
    let far = there.create_cq(4, None).unwrap();
    for (send_cq, recv_cq) in [(&cq, &far), (&far, &cq), (&far, &far)] {
        let init = QpInit { send_cq, recv_cq, ..QpInit::new(&cq) };
        assert_eq!(pd.create_qp(&init).unwrap_err(), CreateError::OtherFabric);
    }
    let channel = there.create_channel().unwrap();
    assert_eq!(here.create_cq(4, Some(&channel)).unwrap_err(), CreateError::OtherFabric);
    assert!(pd.create_qp(&QpInit::new(&cq)).is_ok());
    assert!(there.create_cq(4, Some(&channel)).is_ok());
}
