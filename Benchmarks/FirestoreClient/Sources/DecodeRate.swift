// Measures the decoding of documents: as values of a Codable type, and as dictionaries.

import FirebaseFirestore
import Foundation

private struct Sample: Codable {
  struct Author: Codable {
    var name: String
    var born: Int
  }

  @DocumentID var id: String?
  var title: String
  var number: Int
  var group: Int
  var share: Double
  var tags: [String]
  var author: Author
}

struct DecodeRate {
  let count: Int

  func run() async throws {
    let client = try MeasuredClient.make("decode", cache: MemoryCacheSettings())
    try await client.disableNetwork()
    for number in 0..<count { put(client.document("decode/d\(number)"), sampleFields(number)) }
    let documents = try await client.collection("decode").getDocuments(source: .cache).documents
    var sum = 0
    let decoding = try await seconds {
      for document in documents { sum += try document.data(as: Sample.self).number }
    }
    let reading = await seconds {
      for document in documents { sum += document.data()["number"] as? Int ?? 0 }
    }
    guard sum == count * (count - 1) else { throw MeasurementFailure(text: "wrong documents") }
    try await client.terminate()
    FirestoreClientBenchmarks.row(
      "decoding \(count) documents as a Codable type",
      "\(short(Double(count) / decoding)) a second; as dictionaries \(short(Double(count) / reading))")
  }
}
