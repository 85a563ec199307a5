// Tests the order of numbers against a wider format, which represents integers and doubles exactly. Tests the transforms
// of numbers and arrays with random operands.

import FirestoreModel
import RandomModels
import Testing

@Suite("Numbers", .timeLimit(.minutes(10)))
struct NumberTests {
  @Test("Integers and doubles compare as exact numbers, on random pairs near every boundary")
  func exactComparison() {
    var source = RandomValues(seed: 81)
    for _ in 0..<50_000 {
      let integer = source.integer()
      let double = source.double()
      #if arch(x86_64) && !os(macOS)
        // 80 bits represent every int64 and every double.
        let (a, b) = (Float80(integer), Float80(double))
        let expected: ComparisonOrder =
          double.isNaN ? .descending : (a < b ? .ascending : (a > b ? .descending : .same))
        #expect(Numbers.compare(integer, double) == expected, "\(integer) \(double)")
      #endif
      // On every platform, an integer lies between its neighbouring doubles.
      let near = Double(integer)
      #expect(Numbers.compare(integer, near.nextUp) != .descending)
      #expect(Numbers.compare(integer, near.nextDown) != .ascending)
    }
  }

  @Test("Doubles compare by value, with NaN first and equal zeros")
  func doubles() {
    let ordered: [Double] = [
      .nan, -.infinity, -.greatestFiniteMagnitude, -1, -.leastNonzeroMagnitude, 0, .leastNonzeroMagnitude, 1,
      .greatestFiniteMagnitude, .infinity,
    ]
    for (i, a) in ordered.enumerated() {
      for (j, b) in ordered.enumerated() { #expect(Numbers.compare(a, b) == ComparisonOrder.compare(i, j)) }
    }
    #expect(Numbers.compare(0.0, -0.0) == .same && Numbers.compare(.nan, -.nan) == .same)
  }

  @Test("Increments of integers give the sum, or on overflow the nearest 64-bit integer")
  func increments() {
    var source = RandomValues(seed: 82)
    let field = FieldPath(field: "n")
    for _ in 0..<10_000 {
      let (a, b) = (source.integer(), source.integer())
      let outcome = FieldTransform(field, .increment(.integer(b))).apply(to: .integer(a), requestTime: .epoch)
      let (sum, overflow) = a.addingReportingOverflow(b)
      #expect(outcome.value == .integer(overflow ? (b < 0 ? .min : .max) : sum))
    }
  }

  @Test("Maximum and minimum return the correct operand for random numbers")
  func maximumAndMinimum() {
    var source = RandomValues(seed: 83)
    let field = FieldPath(field: "n")
    for _ in 0..<10_000 {
      let (stored, operand) = (source.number(), source.number())
      let maximum = FieldTransform(field, .maximum(operand)).apply(to: stored, requestTime: .epoch).value
      let minimum = FieldTransform(field, .minimum(operand)).apply(to: stored, requestTime: .epoch).value
      if stored.isNaN || operand.isNaN {
        #expect(maximum.isNaN && minimum.isNaN)
        continue
      }
      #expect(maximum == stored || maximum == operand)
      #expect(Value.compare(maximum, stored) != .ascending && Value.compare(maximum, operand) != .ascending)
      #expect(Value.compare(minimum, stored) != .descending && Value.compare(minimum, operand) != .descending)
      if stored.isQueryEqual(to: operand) { #expect(maximum == stored && minimum == stored) }
    }
  }

  @Test("A union contains every element once, and removed elements are absent, on random arrays")
  func arrays() {
    var source = RandomValues(seed: 84)
    let field = FieldPath(field: "a")
    func elements() -> [Value] { (0..<source.below(6)).map { _ in source.value(depth: 2, inArray: true) } }
    for _ in 0..<2000 {
      let (stored, operands) = (elements(), elements())
      let union = FieldTransform(field, .appendMissing(operands))
        .apply(to: .array(stored), requestTime: .epoch).value
      guard case .array(let all) = union else {
        Issue.record("a union is no array")
        continue
      }
      #expect(Array(all.prefix(stored.count)) == stored)
      for operand in operands { #expect(all.contains { $0.isQueryEqual(to: operand) }) }
      #expect(
        FieldTransform(field, .appendMissing(operands)).apply(to: union, requestTime: .epoch).value == union)
      let rest = FieldTransform(field, .removeAll(operands)).apply(to: union, requestTime: .epoch).value
      guard case .array(let remaining) = rest else {
        Issue.record("a difference is no array")
        continue
      }
      #expect(remaining.allSatisfy { element in !operands.contains { $0.isQueryEqual(to: element) } })
      #expect(remaining.allSatisfy { stored.contains($0) })
    }
  }
}
