// Applies a field transform: computes the field's new value from its current value.
//
// Invariant: the result depends only on the field's value, the operand and the request time, so that replaying a commit
// gives the same document.

extension FieldTransform {
  /// The field's new value, and the result that the client receives.
  public struct Outcome: Hashable, Sendable {
    /// The field's new value.
    public var value: Value
    /// The result in the response: the value, or null for array transforms.
    public var result: Value
  }

  /// Applies the transform.
  ///
  /// - Parameters:
  ///   - current: the field's value; nil if it is missing.
  ///   - requestTime: the commit time, which a server timestamp truncates to milliseconds.
  public func apply(to current: Value?, requestTime: Timestamp) -> Outcome {
    switch operation {
    case .serverTimestamp:
      let value = Value.timestamp(requestTime.truncatedToMilliseconds)
      return Outcome(value: value, result: value)
    case .increment(let operand):
      let value = FieldTransform.sum(current, operand)
      return Outcome(value: value, result: value)
    case .maximum(let operand):
      let value = FieldTransform.minimumOrMaximum(current, operand, .descending)
      return Outcome(value: value, result: value)
    case .minimum(let operand):
      let value = FieldTransform.minimumOrMaximum(current, operand, .ascending)
      return Outcome(value: value, result: value)
    case .appendMissing(let elements):
      return Outcome(value: .array(FieldTransform.array(current).union(elements)), result: .null)
    case .removeAll(let elements):
      return Outcome(value: .array(FieldTransform.array(current).subtracting(elements)), result: .null)
    }
  }

  /// The approximate number of array elements that applying the transform visits.
  func cost(on current: Value?) -> Int {
    switch operation {
    case .appendMissing(let elements), .removeAll(let elements):
      FieldTransform.array(current).count + elements.count
    default: 0
    }
  }

  /// The transform with its operand in stored form.
  var stored: FieldTransform {
    switch operation {
    case .appendMissing(let elements): FieldTransform(field, .appendMissing(elements.map(\.stored)))
    case .removeAll(let elements): FieldTransform(field, .removeAll(elements.map(\.stored)))
    default: self
    }
  }

  /// Validates the path and the operand.
  ///
  /// - Throws: INVALID_ARGUMENT if the transform can never be applied.
  public func validate(limits: FirestoreLimits = .standard) throws(FirestoreError) {
    try DocumentValidation.validate(written: field)
    switch operation {
    case .serverTimestamp: break
    case .increment(let operand), .maximum(let operand), .minimum(let operand):
      if operand.kind != .number { throw .invalidArgument("Input must be a number.") }
    case .appendMissing(let elements), .removeAll(let elements):
      if DocumentSize.of(value: .array(elements)) > limits.documentBytes {
        throw .invalidArgument(
          "The elements of a transform of \(field) are larger than the maximum size of a document, "
            + "\(limits.documentBytes) bytes.")
      }
      try DocumentValidation.validate(.array(elements), at: field.segments.last ?? "", limits: limits)
    }
  }

  private static func array(_ value: Value?) -> [Value] {
    if case .array(let elements)? = value { return elements }
    return []
  }

  private static func sum(_ current: Value?, _ operand: Value) -> Value {
    switch (current, operand) {
    case (.integer(let a)?, .integer(let b)):
      let (sum, overflow) = a.addingReportingOverflow(b)
      return .integer(overflow ? (a < 0 ? .min : .max) : sum)
    case (.integer(let a)?, .double(let b)): return .double(Double(a) + b)
    case (.double(let a)?, .integer(let b)): return .double(a + Double(b))
    case (.double(let a)?, .double(let b)): return .double(a + b)
    default: return operand
    }
  }

  /// The operand if it compares to the current value as `wanted`, else the current value.
  private static func minimumOrMaximum(_ current: Value?, _ operand: Value, _ wanted: ComparisonOrder)
    -> Value
  {
    guard let current, current.kind == .number else { return operand }
    if current.isNaN || operand.isNaN { return .double(.nan) }
    return Value.compare(operand, current) == wanted ? operand : current
  }
}
