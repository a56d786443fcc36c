// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice The part of Permit2's signature transfers that the settler calls.
interface IPermit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    /// @notice Transfers `requestedAmount`, at most `permitted.amount`, by a signature of `owner` over the token and the permitted amount, the
    /// caller as spender, `nonce`, `deadline` and the hash of the witness. Each nonce of an owner works once.
    function permitWitnessTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external;

    /// @notice Which of the 256 nonces from `word` * 256 on the owner has used or invalidated; bit i is that of nonce `word` * 256 + i.
    function nonceBitmap(address owner, uint256 word) external view returns (uint256 bitmap);
}
