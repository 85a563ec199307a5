// Telling the operator which index would spare a query most of what it goes over, as text for `firestore.indexes.json`.
//
// Invariant: each index is told once while a database is open, and only so many of them, since queries are their
// clients' to make; field names are in the text, values never.

import FirestoreModel
import Locking
import OrderedStore

extension QueryRun {
  /// Rows from which on a query is worth an index of its own.
  private static let manyRows = 1_000
  /// How many rows a result may cost.
  private static let rowsForResult = 10

  /// Whether far more was gone over than was found.
  var isWasteful: Bool { rowsRead > Self.manyRows && rowsRead / Self.rowsForResult > resultsFound }
}

extension FirestoreDatabase {
  /// How many indexes are told of, and how long the text of one may be.
  private static let tellings = 1_000
  private static let textBytes = 8_192

  /// Tells the operator of the index that a query which has been answered would have needed, if it went over many rows
  /// for few results.
  func advise(on run: QueryRun) {
    guard run.isWasteful, !options.requiresIndexes,
      let missing = Planner(run.query, indexes.current, at: Version(microseconds: .max)).missingIndex,
      let element = missing.configuration, element.text.utf8.count <= Self.textBytes
    else { return }
    let key = element.text.hashValue
    let isNew = advised.withLock { $0.count < Self.tellings && $0.insert(key).inserted }
    guard isNew else { return }
    options.report(
      "\(name): a query went over \(run.rowsRead) rows for \(run.resultsFound) results; an index would help it: add to "
        + "\"\(element.list)\" in firestore.indexes.json \(element.text)")
  }
}

extension MissingIndex {
  /// The index as an element of a list in `firestore.indexes.json`; nil if it stands there already, or would not help
  /// here. Of one that could not be built the operator was told.
  var configuration: (list: String, text: String)? {
    switch self {
    case .composite(_, .building), .composite(_, .failed), .vector: return nil
    case .composite(let index, .unknown):
      var fields = index.parts.map { Self.field($0.field.description, $0.mode) }
      // Names follow the last field unless it is said that they do not.
      if index.namesDescend != (index.parts.last?.mode == .descending) {
        fields.append(Self.field("__name__", index.namesDescend ? .descending : .ascending))
      }
      return (
        "indexes",
        "{\"collectionGroup\":\(Self.quoted(index.collectionID)),\"queryScope\":\"\(index.scope.text)\",\"fields\":["
          + fields.joined(separator: ",") + "]}"
      )
    case .single(let index):
      guard let part = index.parts.first else { return nil }
      var modes = ["\"queryScope\":\"\(index.scope.text)\",\(Self.mode(part.mode))"]
      if index.scope == .collectionGroup {
        // What is listed takes the place of what every field has.
        modes =
          [CompositeIndex.Mode.ascending, .descending, .contains].map {
            "\"queryScope\":\"COLLECTION\",\(Self.mode($0))"
          } + modes
      }
      return (
        "fieldOverrides",
        "{\"collectionGroup\":\(Self.quoted(index.collectionID)),\"fieldPath\":\(Self.quoted(part.field.description)),"
          + "\"indexes\":[" + modes.map { "{\($0)}" }.joined(separator: ",") + "]}"
      )
    }
  }

  private static func field(_ path: String, _ mode: CompositeIndex.Mode) -> String {
    "{\"fieldPath\":\(quoted(path)),\(self.mode(mode))}"
  }

  private static func mode(_ mode: CompositeIndex.Mode) -> String {
    switch mode {
    case .ascending: "\"order\":\"ASCENDING\""
    case .descending: "\"order\":\"DESCENDING\""
    case .contains: "\"arrayConfig\":\"CONTAINS\""
    }
  }

  /// A string in JSON, without line ends or other controls.
  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case _ where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value):
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

extension IndexConfiguration.Scope {
  fileprivate var text: String { self == .collection ? "COLLECTION" : "COLLECTION_GROUP" }
}
