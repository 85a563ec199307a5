// Encodes a query explanation as google.firestore.v1.ExplainMetrics.
//
// Numbers inside a google.protobuf.Struct are encoded as strings, as Cloud Firestore does.

import FirestoreEngine
import NIOCore

extension ByteBuffer {
  /// Writes a google.firestore.v1.ExplainMetrics field.
  mutating func writeExplanation(_ number: Int, _ explanation: QueryExplanation) {
    writeMessage(number) { buffer in
      buffer.writeMessage(1) { buffer in
        for index in explanation.indexesUsed {
          buffer.writeMessage(1) { buffer in
            buffer.writeEntry("query_scope") { $0.writeField(3, index.queryScope) }
            buffer.writeEntry("properties") { $0.writeField(3, index.properties) }
          }
        }
      }
      if let statistics = explanation.statistics { buffer.writeStatistics(2, statistics) }
    }
  }

  /// Writes a google.firestore.v1.ExecutionStats field.
  private mutating func writeStatistics(_ number: Int, _ statistics: QueryExplanation.Statistics) {
    writeMessage(number) { buffer in
      buffer.writeField(1, statistics.resultsReturned)
      buffer.writeMessage(3) { buffer in
        buffer.writeField(1, statistics.microseconds / 1_000_000)
        buffer.writeField(2, statistics.microseconds % 1_000_000 * 1_000)
      }
      buffer.writeField(4, statistics.readOperations)
      buffer.writeMessage(5) { buffer in
        buffer.writeNumber("index_entries_scanned", statistics.entriesScanned)
        buffer.writeNumber("documents_scanned", statistics.documentsScanned)
        buffer.writeEntry("billing_details") { buffer in
          buffer.writeMessage(5) { buffer in
            buffer.writeNumber("documents_billable", statistics.documentsBillable)
            buffer.writeNumber("index_entries_billable", statistics.entriesBillable)
            buffer.writeNumber("small_ops", 0)
            buffer.writeNumber("min_query_cost", statistics.minimumCost)
          }
        }
      }
    }
  }

  /// Writes an entry of a google.protobuf.Struct whose value is a number in a string.
  private mutating func writeNumber(_ name: String, _ value: Int) {
    writeEntry(name) { $0.writeField(3, String(value)) }
  }

  /// Writes an entry of a google.protobuf.Struct; `value` writes its google.protobuf.Value.
  private mutating func writeEntry(_ name: String, _ value: (inout ByteBuffer) -> Void) {
    writeMessage(1) { buffer in
      buffer.writeField(1, name)
      buffer.writeMessage(2, value)
    }
  }
}
