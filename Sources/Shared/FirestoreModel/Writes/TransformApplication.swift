// What transforms compute.
//
// Invariant: the result depends on the field's value, the operand and the request's time alone, so that
// replaying a commit gives the same document.

extension FieldTransform {
  /// The field's new value, and what the write's result reports.
  public struct Outcome: Hashable, Sendable {
    /// What the field becomes.
    public var value: Value
    /// What the client is told: the value, or null for array transforms.
    public var result: Value
  }

  /// Computes the transform of a field's present value, nil if it is missing. `requestTime` is the commit's
  /// time, which a server timestamp cuts to milliseconds.
  public func apply(to current: Value?, requestTime: Timestamp) -> Outcome {
    switch operation {
    case .serverTimestamp:
      let value = Value.timestamp(requestTime.truncatedToMilliseconds)
      return Outcome(value: value, result: value)
    case .increment(let operand):
      let value = FieldTransform.sum(current, operand)
      return Outcome(value: value, result: value)
    case .maximum(let operand):
      let value = FieldTransform.extreme(current, operand, .descending)
      return Outcome(value: value, result: value)
    case .minimum(let operand):
      let value = FieldTransform.extreme(current, operand, .ascending)
      return Outcome(value: value, result: value)
    case .appendMissing(let elements):
      return Outcome(value: .array(FieldTransform.array(current).union(elements)), result: .null)
    case .removeAll(let elements):
      return Outcome(value: .array(FieldTransform.array(current).subtracting(elements)), result: .null)
    }
  }

  /// About how many elements computing it goes over.
  func work(on current: Value?) -> Int {
    switch operation {
    case .appendMissing(let elements), .removeAll(let elements):
      FieldTransform.array(current).count + elements.count
    default: 0
    }
  }

  /// The transform with its operand as it is stored.
  var stored: FieldTransform {
    switch operation {
    case .appendMissing(let elements): FieldTransform(field, .appendMissing(elements.map(\.stored)))
    case .removeAll(let elements): FieldTransform(field, .removeAll(elements.map(\.stored)))
    default: self
    }
  }

  /// Checks the path and the operand; INVALID_ARGUMENT if the transform can never be applied.
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

  /// The operand if it lies on the wanted side of the current value, else the current value.
  private static func extreme(_ current: Value?, _ operand: Value, _ wanted: ComparisonOrder) -> Value {
    guard let current, current.kind == .number else { return operand }
    if current.isNaN || operand.isNaN { return .double(.nan) }
    return Value.compare(operand, current) == wanted ? operand : current
  }
}
