// The document every Firestore measurement uses: about 300 bytes, eight indexed fields.

import FirestoreProtobuf
import SwiftProtobuf

enum BenchmarkDocument {
  static let database = "projects/bench/databases/(default)"

  static func name(_ id: String) -> String { "\(database)/documents/items/\(id)" }

  static func fields(_ seed: Int) -> [String: Google_Firestore_V1_Value] {
    func string(_ s: String) -> Google_Firestore_V1_Value { .with { $0.stringValue = s } }
    func integer(_ i: Int) -> Google_Firestore_V1_Value { .with { $0.integerValue = Int64(i) } }
    return [
      "title": string("Item number \(seed) of the benchmark's collection"),
      "owner": string("user-\(seed % 1000)"),
      "state": string(["open", "done", "late"][seed % 3]),
      "rank": integer(seed),
      "price": .with { $0.doubleValue = Double(seed) * 1.25 },
      "done": .with { $0.booleanValue = seed % 2 == 0 },
      "note": string("A sentence that stands for what people write into a task's note field."),
      "group": integer(seed % 100),
    ]
  }

  static func message(name: String, seed: Int = 1) -> Google_Firestore_V1_Document {
    .with {
      $0.name = name
      $0.fields = fields(seed)
      $0.createTime = .with { $0.seconds = 1_700_000_000 }
      $0.updateTime = .with { $0.seconds = 1_700_000_000 }
    }
  }

  /// A Commit request that writes one document, framed.
  static func commit(id: String, seed: Int) throws -> [UInt8] {
    let request = Google_Firestore_V1_CommitRequest.with {
      $0.database = database
      $0.writes = [
        .with {
          $0.update = .with {
            $0.name = name(id)
            $0.fields = fields(seed)
          }
        }
      ]
    }
    return try request.serializedBytes()
  }
}
