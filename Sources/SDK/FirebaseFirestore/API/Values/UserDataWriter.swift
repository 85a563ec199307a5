// Converts values of the model to data for the app.
//
// Invariant: every number is an NSNumber, at every depth, so that `as? Int` and `as? Double` behave on Linux
// as they do on Apple's platforms.

import FirebaseCore
import FirestoreModel
import Foundation

struct UserDataWriter {
  let firestore: Firestore
  let serverTimestamps: ServerTimestampBehavior

  func map(_ fields: MapValue) -> [String: Any] {
    var result: [String: Any] = [:]
    result.reserveCapacity(fields.count)
    for entry in fields.entries { result[entry.key] = value(entry.value) }
    return result
  }

  func value(_ value: Value) -> Any {
    switch value {
    case .null: return NSNull()
    case .boolean(let boolean): return NSNumber(value: boolean)
    case .integer(let integer): return NSNumber(value: integer)
    case .double(let double): return NSNumber(value: double)
    case .timestamp(let time): return timestamp(time)
    case .string(let string): return string
    case .bytes(let bytes): return Data(bytes)
    case .reference(let name): return reference(name)
    case .geoPoint(let point): return GeoPoint(unchecked: point)
    case .array(let elements): return elements.map { self.value($0) }
    case .map(let map): return self.map(map)
    case .vector(let numbers): return VectorValue(numbers)
    case .pendingServerTimestamp(let pending):
      switch serverTimestamps {
      case .none: return NSNull()
      case .estimate: return timestamp(pending.localWriteTime)
      case .previous: return pending.previousValue.map { self.value($0) } ?? NSNull()
      }
    }
  }

  private func timestamp(_ time: ModelTimestamp) -> Any {
    // A value from the server may be outside the app's range. It must not stop the program.
    let time = min(max(time, .minimum), .maximum)
    return Timestamp(seconds: time.seconds, nanoseconds: min(max(time.nanoseconds, 0), 999_999_999))
  }

  private func reference(_ name: DocumentName) -> Any {
    if name.database != firestore.databaseName {
      FirestoreLog.warning(
        "I-FST000004",
        "A document reference refers to another database (\(name.database)), which is not supported."
          + " It is treated as a reference within the current database.")
    }
    let local = DocumentName(database: firestore.databaseName, path: name.path) ?? name
    return DocumentReference(local, firestore)
  }
}
