// Validates writes and applies them to a document. The server and clients' caches use the same code.
//
// Invariant: the fields of an update apply first, then the transforms in order. Each transform receives the result of
// the transforms before it.

extension Write {
  /// The result of applying a write to a document.
  public struct Outcome: Hashable, Sendable {
    /// The document's fields after the write; nil if it does not exist then.
    public var fields: MapValue?
    /// One result for each transform, in order.
    public var transformResults: [Value]
  }

  /// Applies the write without checking its precondition.
  ///
  /// - Parameter existing: the document's fields; nil if it does not exist.
  public func apply(to existing: MapValue?, requestTime: Timestamp) -> Outcome {
    apply(to: existing, requestTime: requestTime, spending: { _ in })
  }

  /// Applies the write within a caller's budget.
  ///
  /// - Parameter spend: called before each step with its approximate cost: the number of the document's fields and
  ///   array elements that the step visits, without the contents of the write itself. It may throw.
  public func apply(
    to existing: MapValue?, requestTime: Timestamp, spending spend: (Int) throws -> Void
  ) rethrows -> Outcome {
    var fields: MapValue
    switch operation {
    case .delete: return Outcome(fields: nil, transformResults: [])
    case .verify: return Outcome(fields: existing, transformResults: [])
    case .transform: fields = existing ?? MapValue()
    case .update(_, let new):
      fields = new
      if let mask {
        let existing = existing ?? MapValue()
        try spend(existing.costOfChanging(mask))
        fields = existing.merging(new, mask: mask)
      }
    }
    let transforms = allTransforms
    if !transforms.isEmpty { try spend(fields.costOfChanging(transforms.map(\.field))) }
    var results: [Value] = []
    results.reserveCapacity(transforms.count)
    for transform in transforms {
      let current = fields.value(at: transform.field)
      try spend(transform.cost(on: current))
      let outcome = transform.apply(to: current, requestTime: requestTime)
      fields.set(outcome.value, at: transform.field)
      results.append(outcome.result)
    }
    return Outcome(fields: fields, transformResults: results)
  }

  /// The write with its values in stored form, so that its result needs no further conversion.
  public var stored: Write {
    var write = self
    switch operation {
    case .update(let name, let fields): write.operation = .update(name, fields: fields.stored)
    case .transform(let name, let transforms): write.operation = .transform(name, transforms.map(\.stored))
    case .delete, .verify: break
    }
    write.transforms = transforms.map(\.stored)
    return write
  }

  /// Whether the write changed a document. Compares only the fields that the write names, each path once.
  public func hasChanged(_ before: MapValue?, into after: MapValue?) -> Bool {
    guard let before, let after else { return (before == nil) != (after == nil) }
    if case .update = operation, mask == nil { return before != after }
    var paths = Set(mask ?? [])
    for transform in allTransforms { paths.insert(transform.field) }
    return paths.contains { before.value(at: $0) != after.value(at: $0) }
  }

  /// Validates the write without its document. The size of the result is validated when it is known.
  ///
  /// - Throws: INVALID_ARGUMENT if the write can never be applied to a document of this database.
  public func validate(
    in database: DatabaseName, limits: FirestoreLimits = .standard
  ) throws(FirestoreError) {
    guard document.database == database else {
      throw .invalidArgument("Document \(document) does not belong to database \(database).")
    }
    if case .updateTime(let time) = precondition {
      guard time.seconds >= 0 else {
        throw .invalidArgument("The precondition's update_time must not lie before 1970.")
      }
      guard time.isInRange else {
        throw .invalidArgument(
          "The precondition's update_time must lie in the years 1970 to 9999, with 0 to 999,999,999 nanoseconds."
        )
      }
      guard time.nanoseconds.isMultiple(of: 1000) else {
        throw .invalidArgument("The precondition's update_time must be in whole microseconds.")
      }
    }
    switch operation {
    case .update(let name, let fields):
      if let mask {
        for path in mask { try DocumentValidation.validate(written: path) }
        // Only the fields that the mask names are stored, so only they are validated.
        let named = fields.projected(to: FieldMask(mask))
        if DocumentSize.of(fields: named) > limits.documentBytes {
          throw .invalidArgument(
            "Document '\(name)' cannot be written because what its mask names exceeds the maximum allowed size of "
              + "a document, \(limits.documentBytes) bytes.")
        }
        try DocumentValidation.validate(named, limits: limits)
      } else {
        try DocumentValidation.validate(fields, of: name, limits: limits)
      }
    case .delete: try rejectUpdateParts("delete")
    case .verify:
      try rejectUpdateParts("verify")
      if precondition == nil { throw .invalidArgument("A verify of \(document) must have a precondition.") }
    case .transform(_, let transforms):
      try rejectUpdateParts("transform")
      if transforms.isEmpty {
        throw .invalidArgument("a transform must specify at least one field transform.")
      }
    }
    let transforms = allTransforms
    for transform in transforms { try transform.validate(limits: limits) }
    try rejectNested(transforms)
  }

  /// Rejects transforms of a field and of a field inside it in one write, since their order would decide the result.
  private func rejectNested(_ transforms: [FieldTransform]) throws(FirestoreError) {
    guard transforms.count > 1 else { return }
    // In this order, the fields inside a field directly follow it.
    let fields = transforms.map(\.field).sorted()
    for (field, next) in zip(fields, fields.dropFirst())
    where next.count > field.count && next.hasPrefix(field) {
      throw .invalidArgument(
        "Cannot transform property \(field) and its nested property \(next) at the same time.")
    }
  }

  private func rejectUpdateParts(_ kind: String) throws(FirestoreError) {
    if mask != nil { throw .invalidArgument("a \(kind) must not specify a document mask.") }
    if !transforms.isEmpty { throw .invalidArgument("a \(kind) must not specify a update transform.") }
  }
}

extension MapValue {
  /// The number of fields that changing these paths copies: the fields of every map on each path. Maps that a path
  /// shares with the path before it count once.
  fileprivate func costOfChanging(_ paths: [FieldPath]) -> Int {
    var cost = count
    var previous: ArraySlice<String> = []
    for path in paths {
      let parents = path.segments.dropLast()
      let shared = zip(previous, parents).prefix { $0 == $1 }.count
      var map = self
      for (level, name) in parents.enumerated() {
        guard case .map(let inner)? = map[name] else { break }
        map = inner
        if level >= shared { cost += map.count }
      }
      previous = parents
    }
    return cost
  }
}

extension Precondition {
  /// Checks the condition against the stored document.
  ///
  /// - Parameter stored: the update time of the document; nil if it is missing.
  /// - Throws: NOT_FOUND, ALREADY_EXISTS, or FAILED_PRECONDITION for a wrong update time. A missing document has a
  ///   wrong update time, since clients retry FAILED_PRECONDITION and not the other codes.
  public func check(_ name: DocumentName, updateTime stored: Timestamp?) throws(FirestoreError) {
    switch self {
    case .exists(true): if stored == nil { throw .notFound("No document to update: \(name)") }
    case .exists(false): if stored != nil { throw .alreadyExists("Document already exists: \(name)") }
    case .updateTime(let required):
      guard let stored else {
        throw .failedPrecondition(
          "there is no document, which does not match the required base version (\(required.microseconds))")
      }
      if stored != required {
        throw .failedPrecondition(
          "the stored version (\(stored.microseconds)) does not match the required base version "
            + "(\(required.microseconds))")
      }
    }
  }
}
