// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title TransferProbe
/// @notice Measures what a transfer takes and what arrives, without a transaction. It is never deployed: `eth_call` runs its creation code, with
/// the arguments appended, in place of the code of an account that has the token, so that this account is the sender. The constructor returns
/// four words: the amount asked for, what was taken from the account, what was received, and whether the token returned true or nothing.
contract TransferProbe {
    /// @param token The token to transfer.
    /// @param to Who receives it.
    /// @param maximum Most to transfer. No more than half of what the account has is transferred, so that a fee on top can be paid, too.
    /// @param next If it is not zero, an account that is called after the transfer, and whose code is replaced like this one's. Its answer is
    /// appended to this one's.
    constructor(IERC20 token, address to, uint256 maximum, address next) {
        uint256 held = token.balanceOf(address(this));
        uint256 before = token.balanceOf(to);
        uint256 amount = held / 2 < maximum ? held / 2 : maximum;
        (bool done, bytes memory said) = address(token).call(abi.encodeCall(IERC20.transfer, (to, amount)));
        bool agreed = done && (said.length == 0 || (said.length >= 32 && abi.decode(said, (uint256)) == 1));
        uint256 left = token.balanceOf(address(this));
        uint256 arrived = token.balanceOf(to);
        bytes memory answer = abi.encode(
            amount,
            held > left ? held - left : 0,
            arrived > before ? arrived - before : 0,
            agreed
        );
        if (next != address(0)) {
            (, bytes memory more) = next.call("");
            answer = bytes.concat(answer, more);
        }
        // Same as return answer, which Solidity does not have in a constructor.
        assembly ("memory-safe") {
            return(add(answer, 0x20), mload(answer))
        }
    }
}
