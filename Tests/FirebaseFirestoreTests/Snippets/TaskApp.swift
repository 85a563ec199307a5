// swift-format-ignore-file
// The task app of Firebase's guides. The file compiles only if the SDK is source-compatible. The code is
// unchanged and contains force unwraps, so the formatter ignores it. Replacements for Apple's frameworks are
// marked.

import Foundation
import FirebaseCore
import FirebaseFirestore

// The guide's code does not write `any`. With this alias, its type name means an `any` type.
extension MasterViewController {
  typealias ListenerRegistration = any FirebaseFirestore.ListenerRegistration
}

struct Task {
  var name: String
  var done: Bool
  var id: String

  var dictionary: [String: Any] {
    return ["name": name, "done": done]
  }
}

extension Task {
  init?(dictionary: [String: Any], id: String) {
    guard let name = dictionary["name"] as? String,
      let done = dictionary["done"] as? Bool
    else { return nil }
    self.init(name: name, done: done, id: id)
  }
}

// Replaces UITableViewController. It prints the list instead of showing a table.
class MasterViewController {
  private var documents: [DocumentSnapshot] = []
  public var tasks: [Task] = []
  private var listener: ListenerRegistration!

  fileprivate func baseQuery() -> Query {
    return Firestore.firestore().collection("Tasks").limit(to: 50)
  }

  fileprivate var query: Query? {
    didSet {
      if let listener = listener {
        listener.remove()
      }
    }
  }

  func viewDidLoad() {
    self.query = baseQuery()
  }

  func viewWillAppear(_ animated: Bool) {
    self.listener = query?.addSnapshotListener { (documents, error) in
      guard let snapshot = documents else {
        print("Error fetching documents results: \(error!)")
        return
      }

      let results = snapshot.documents.map { (document) -> Task in
        if let task = Task(dictionary: document.data(), id: document.documentID) {
          return task
        } else {
          fatalError("Unable to initialize type \(Task.self) with dictionary \(document.data())")
        }
      }

      self.tasks = results
      self.documents = snapshot.documents
      self.reloadData()
    }
  }

  func viewWillDisappear(_ animated: Bool) {
    self.listener.remove()
  }

  // tableView(_:didSelectRowAt:)
  func didSelectRow(at row: Int) {
    let item = tasks[row]
    let collection = Firestore.firestore().collection("Tasks")

    collection.document(item.id).updateData([
      "done": !item.done
    ]) { err in
      if let err = err {
        print("Error updating document: \(err)")
      } else {
        print("Document successfully updated")
      }
    }
  }

  // tableView(_:commit:forRowAt:), editingStyle == .delete
  func deleteRow(at row: Int) {
    let item = tasks[row]
    // The guide's code has `_ =` before the call, which causes a warning because the call returns Void.
    Firestore.firestore().collection("Tasks").document(item.id).delete()
  }

  // The text is an argument. In the guide it comes from the text field of a UIAlertController.
  func addTask(_ text: String?) {
    let db = Firestore.firestore()
    var docRef: DocumentReference? = nil
    docRef = db.collection("Tasks").addDocument(data: [
      "name": text ?? "empty task",
      "done": false,
    ]) { err in
      if let err = err {
        print("Error adding document: \(err)")
      } else {
        print("Document added with ID: \(docRef!.documentID)")
      }
    }
  }

  func reloadData() { tasks.forEach { print($0.dictionary) } }
}

func run000() {
  FirebaseApp.configure()
  let controller = MasterViewController()
  controller.viewDidLoad()
  controller.viewWillAppear(true)
  controller.addTask("Buy milk")
}

func queries000(searchString: String) -> [Query] {
  let docRef = Firestore.firestore().collection("Tasks")
  return [
    docRef.whereField("name", isEqualTo: searchString),
    docRef.order(by: "name").limit(to: 5),
    docRef
      .whereField("name", isEqualTo: searchString)
      .whereField("done", isEqualTo: false)
      .order(by: "name")
      .limit(to: 5),
  ]
}
