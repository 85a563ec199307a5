// Parsing: the cost of decoding a message, by Hearth's readers and by the stock decoders (SwiftProtobuf and
// JSONSerialization), in this process, on one thread.

import FirestoreProtobuf
import FirestoreWire
import Foundation
import RealtimeWire
import SwiftProtobuf

/// Commit requests of one document decoded per second, into the model.
func readCommits(_ setting: Setting) throws -> Double {
  let request = try BenchmarkDocument.commit(id: "one", seed: 1)
  return try perSecond(setting) {
    try request.withUnsafeBytes { try CommitRequest(decoding: $0).writes.count }
  }
}

/// The same by SwiftProtobuf, into its generated messages.
func stockReadCommits(_ setting: Setting) throws -> Double {
  let request = try BenchmarkDocument.commit(id: "one", seed: 1)
  return try perSecond(setting) {
    try Google_Firestore_V1_CommitRequest(serializedBytes: request).writes.count
  }
}

/// RunQuery requests decoded per second, into the model.
func readQueries(_ setting: Setting) throws -> Double {
  let request = try queryRequest()
  return try perSecond(setting) {
    try request.withUnsafeBytes { try RunQueryRequest(decoding: $0).query == nil ? 0 : 1 }
  }
}

/// The same by SwiftProtobuf.
func stockReadQueries(_ setting: Setting) throws -> Double {
  let request = try queryRequest()
  return try perSecond(setting) {
    try Google_Firestore_V1_RunQueryRequest(serializedBytes: request).structuredQuery.hasWhere ? 1 : 0
  }
}

/// Messages of the Realtime Database that put a record, decoded per second, into a request and a tree.
func readPuts(_ setting: Setting) throws -> Double {
  let message = Array(putMessage.utf8)
  return try perSecond(setting) {
    guard case .request = try message.withUnsafeBytes({ try ClientMessage(json: $0) }) else { return 0 }
    return 1
  }
}

/// The same by Foundation's JSONSerialization, into dictionaries.
func stockReadPuts(_ setting: Setting) throws -> Double {
  let message = Data(putMessage.utf8)
  return try perSecond(setting) {
    (try JSONSerialization.jsonObject(with: message) as? [String: Any])?.count ?? 0
  }
}

private let putMessage =
  #"{"t":"d","d":{"r":7,"a":"p","b":{"p":"/rooms/kitchen/messages/-NabcdefGhijklmnopqr","d":{"#
  + #""author":"user-17","text":"A sentence that stands for what people write to each other.","sent":1700000000000,"#
  + #""stars":3.5,"read":true,"tags":{"a":true,"b":true},"place":{"latitude":52.52,"longitude":13.405}}}}}"#

private func queryRequest() throws -> [UInt8] {
  let request = Google_Firestore_V1_RunQueryRequest.with {
    $0.parent = BenchmarkDocument.parent
    $0.structuredQuery = BenchmarkDocument.query(owner: "user-17")
    $0.structuredQuery.orderBy = [
      .with {
        $0.field = .with { $0.fieldPath = "rank" }
        $0.direction = .descending
      }
    ]
    $0.structuredQuery.limit = .with { $0.value = 20 }
  }
  return try request.serializedBytes()
}

/// The rate of a repeated operation per second of processor time, which other processes do not affect. The
/// operation returns part of its result, so that the compiler cannot remove it.
func perSecond(_ setting: Setting, _ work: () throws -> Int) throws -> Double {
  let seconds = min(1, setting.seconds)
  var done = 0
  var seen = 0
  let start = threadSeconds()
  var elapsed = 0.0
  while elapsed < seconds {
    for _ in 0..<1000 { seen += try work() }
    done += 1000
    elapsed = threadSeconds() - start
  }
  guard seen >= done else { throw BenchmarkFailure("a message was not read") }
  return Double(done) / elapsed
}

private func threadSeconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
}
