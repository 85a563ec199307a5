// Reads the second factors that an administrator sets on an account.

import Identity
import JSON

extension IdentityCall {
  /// Converts MfaEnrollment messages. Phone factors with the same number are merged. A time-based factor keeps the secret
  /// of the existing factor with its ID, which administrators never see.
  /// - Throws: `INVALID_MFA_ENROLLMENT_ID`, `INVALID_MFA_PHONE_NUMBER` or `DUPLICATE_MFA_ENROLLMENT_ID`.
  func enrollments(
    _ list: [JSONValue], existing: [Account.SecondFactor], generatesIDs: Bool
  ) throws(IdentityError) -> [Account.SecondFactor] {
    var factors: [Account.SecondFactor] = []
    for element in list {
      let id: String
      if let requestedID = element["mfaEnrollmentId"]?.string, !requestedID.isEmpty {
        id = requestedID
      } else if generatesIDs {
        id = RandomText.identifier(28)
      } else {
        throw .rejected("INVALID_MFA_ENROLLMENT_ID", "mfaEnrollmentId must be defined.")
      }
      let kind: Account.SecondFactor.Kind
      if element["totpInfo"] != nil, let enrolled = existing.first(where: { $0.id == id }),
        enrolled.phoneNumber == nil
      {
        kind = enrolled.kind
      } else {
        guard let number = element["phoneInfo"]?.string, PhoneNumber.isValid(number) else {
          throw .rejected("INVALID_MFA_PHONE_NUMBER", "Invalid format.")
        }
        if factors.contains(where: { $0.phoneNumber == number }) { continue }
        kind = .phone(number)
      }
      guard !factors.contains(where: { $0.id == id }) else { throw .rejected("DUPLICATE_MFA_ENROLLMENT_ID") }
      factors.append(
        Account.SecondFactor(
          id: id, displayName: element["displayName"]?.string,
          enrolledAt: element["enrolledAt"]?.string ?? RFC3339.text(now), kind: kind))
    }
    return factors
  }
}
