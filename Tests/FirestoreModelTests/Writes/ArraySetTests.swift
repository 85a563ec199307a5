// Tests the set operations of array transforms: their results and their cost.

import Testing

@testable import FirestoreModel

/// The set operations of the array transforms, compared with naive loops.
@Suite("Set operations on arrays", .timeLimit(.minutes(10)))
struct ArraySetTests {
  private static let values: [Value] = [
    .null, .integer(1), .double(1), .integer(2), .double(.nan), .double(-0.0), .double(0), .string("1"),
    .boolean(true),
    .array([.integer(1)]), .array([.double(1)]),
  ]

  private func random(_ generator: inout some RandomNumberGenerator) -> [Value] {
    (0..<Int.random(in: 0..<12, using: &generator)).map { _ in
      ArraySetTests.values.randomElement(using: &generator) ?? .null
    }
  }

  @Test("Appending and removing give the same results as comparing every pair of elements")
  func pairwiseComparison() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<2_000 {
      let stored = random(&generator)
      let elements = random(&generator)
      var appended = stored
      for element in elements where !appended.contains(where: { $0.isQueryEqual(to: element) }) {
        appended.append(element)
      }
      #expect(stored.union(elements) == appended, "\(stored) and \(elements)")
      let removed = stored.filter { kept in !elements.contains { $0.isQueryEqual(to: kept) } }
      #expect(stored.subtracting(elements) == removed, "\(stored) without \(elements)")
    }
  }

  @Test("Set operations on the largest arrays of a document take less than a second")
  func largestArrays() {
    let stored = (0..<60_000).map { Value.integer($0) }
    let elements = (30_000..<90_000).map { Value.double(Double($0)) }
    #expect(stored.union(elements).count == 90_000)
    #expect(stored.subtracting(elements).count == 30_000)
  }

  @Test("Operands larger than a document are rejected before any comparison")
  func tooLargeOperands() throws {
    let elements = (0..<200_000).map { Value.integer($0) }
    let transform = FieldTransform(FieldPath(field: "a"), .appendMissing(elements))
    #expect(throws: FirestoreError.self) { try transform.validate() }
  }
}
