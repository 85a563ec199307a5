// Multi-factor info: the second factors that a user has enrolled.

public import Foundation

/// The type of a second factor by phone.
public let PhoneMultiFactorID = "phone"
/// The type of a second factor by one-time passwords.
public let TOTPMultiFactorID = "totp"

/// An enrolled second factor.
open class MultiFactorInfo: NSObject, NSSecureCoding, @unchecked Sendable {
  // SAFETY: all properties are constants.
  /// The ID of the enrollment.
  public let uid: String
  /// The name that the user gave the factor.
  public let displayName: String?
  /// The time of the enrollment; 1970-01-01T00:00:00Z if the server did not send it.
  public let enrollmentDate: Date
  /// The type of the factor: `phone` or `totp`.
  public let factorID: String
  let record: UserRecord.Factor

  init(_ record: UserRecord.Factor, factorID: String) {
    self.record = record
    self.factorID = factorID
    uid = record.uid
    displayName = record.displayName
    enrollmentDate = record.enrollmentDate ?? Date(timeIntervalSince1970: 0)
    super.init()
  }

  /// Makes an object of the class for the type of the factor.
  static func make(_ record: UserRecord.Factor) -> MultiFactorInfo {
    record.phoneNumber == nil
      ? MultiFactorInfo(record, factorID: TOTPMultiFactorID) : PhoneMultiFactorInfo(record)
  }

  /// Always true.
  public static var supportsSecureCoding: Bool { true }

  /// Encodes the properties.
  public func encode(with coder: NSCoder) {
    coder.encodeValue(record)
  }

  /// Decodes the properties; nil for an archive of another type.
  public required init?(coder: NSCoder) {
    guard let record = coder.decodeValue(UserRecord.Factor.self) else { return nil }
    self.record = record
    factorID = record.phoneNumber == nil ? TOTPMultiFactorID : PhoneMultiFactorID
    uid = record.uid
    displayName = record.displayName
    enrollmentDate = record.enrollmentDate ?? Date(timeIntervalSince1970: 0)
    super.init()
  }
}

/// A phone that is a second factor.
open class PhoneMultiFactorInfo: MultiFactorInfo, @unchecked Sendable {
  // SAFETY: this class adds no properties.
  /// The type of a second factor by phone.
  public static let PhoneMultiFactorID = "phone"
  /// The type of a second factor by one-time passwords.
  public static let TOTPMultiFactorID = "totp"

  init(_ record: UserRecord.Factor) {
    super.init(record, factorID: Self.PhoneMultiFactorID)
  }

  /// Decodes the properties; nil for an archive of another type.
  public required init?(coder: NSCoder) {
    super.init(coder: coder)
  }

  /// The phone number. During a sign-in the server hides all digits except the last ones.
  open var phoneNumber: String { record.phoneNumber ?? "" }
}
