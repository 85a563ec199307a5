// Adapts the outcomes of expressions of both rule languages to coverage, which compares, counts and reports them.

import Access
import JSON
import RealtimeModel

/// Limits of the outcomes that coverage keeps for comparison.
private enum CoveredSize {
  /// The largest text, in bytes.
  static let maximumTextBytes = 512
  /// The largest weight of a value with parts, as ``RuleWeight`` measures it.
  static let maximumWeight = 4096
}

extension RuleTrace.Outcome: CoveredOutcome {
  var coverageValue: JSONValue {
    switch self {
    case .value(let value): CoverageValueWriter.json(value)
    case .failure: CoverageValueWriter.undefined
    }
  }

  var boolean: Bool? {
    if case .value(.bool(let value)) = self { return value }
    return nil
  }

  var isCostly: Bool {
    guard case .value(let value) = self else { return false }
    return switch value {
    case .string, .bytes, .list, .map, .set, .mapDiff, .path, .vector: true
    default: false
    }
  }

  var compactForm: RuleTrace.Outcome? {
    guard case .value(let value) = self else { return self }
    let isSmall =
      switch value {
      case .string(let text): text.byteCount <= CoveredSize.maximumTextBytes
      case .bytes(let bytes): bytes.count <= CoveredSize.maximumTextBytes
      case .list, .map, .set, .mapDiff, .path, .vector:
        RuleWeight.of(value, limit: CoveredSize.maximumWeight) <= CoveredSize.maximumWeight
      default: true
      }
    return isSmall ? self : nil
  }

  func hasSameForm(as other: RuleTrace.Outcome) -> Bool {
    switch (self, other) {
    case (.failure, .failure): true
    // Reports show only the size of a set, and no part of a difference of maps.
    case (.value(.set(let set)), .value(.set(let other))): set.members.count == other.members.count
    case (.value(.mapDiff), .value(.mapDiff)), (.value(.constraint), .value(.constraint)): true
    case (.value(let value), .value(let other)): RuleEquality.strict.equal(value, other)
    default: false
    }
  }
}

extension RealtimeOutcome: CoveredOutcome {
  var coverageValue: JSONValue {
    switch self {
    case .failure: CoverageValueWriter.undefined
    case .value(.null): .object(["nullValue": .null])
    case .value(.bool(let value)): .object(["boolValue": .bool(value)])
    case .value(.number(let value)):
      .object(["floatValue": value.isFinite ? .double(value) : .string(RealtimeText.text(of: value))])
    case .value(.string(let text)): CoverageValueWriter.text(text)
    case .value(let other): CoverageValueWriter.text(other.summary)
    }
  }

  var boolean: Bool? {
    if case .value(.bool(let value)) = self { return value }
    return nil
  }

  var isCostly: Bool {
    guard case .value(let value) = self else { return false }
    return switch value {
    case .string, .snapshot, .user, .claims, .object: true
    case .null, .bool, .number: false
    }
  }

  var compactForm: RealtimeOutcome? {
    guard case .value(let value) = self else { return self }
    switch value {
    case .string(let text): return text.utf8.count <= CoveredSize.maximumTextBytes ? self : nil
    case .snapshot(let snapshot):
      return snapshot.path?.keyBytes ?? 0 <= CoveredSize.maximumTextBytes ? self : nil
    case .user(let user):
      guard user.id.utf8.count <= CoveredSize.maximumTextBytes else { return nil }
      return .value(.user(User(id: user.id, claims: .none)))
    case .claims: return .value(.object)
    case .null, .bool, .number, .object: return self
    }
  }

  func hasSameForm(as other: RealtimeOutcome) -> Bool {
    guard case .value(let value) = self, case .value(let other) = other else {
      if case .failure = self, case .failure = other { return true }
      return false
    }
    return switch (value, other) {
    case (.null, .null), (.object, .object), (.object, .claims): true
    case (.number(let value), .number(let other)): value == other && value.sign == other.sign
    case (.string(let value), .string(let other)): value.utf8.elementsEqual(other.utf8)
    case (.snapshot(let value), .snapshot(let other)): value == other
    case (.user(let value), .user(let other)): value.id.utf8.elementsEqual(other.id.utf8)
    default: false
    }
  }
}

extension RealtimeRuleResult {
  /// The result as an outcome.
  var outcome: RealtimeOutcome {
    switch self {
    case .granted: .value(.bool(true))
    case .denied: .value(.bool(false))
    case .failed(let failure): .failure(failure)
    }
  }
}
