// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @title TransferProbe
/// @notice Measures what a transfer takes and what arrives, without anything being sent. It is never deployed: `eth_call` runs its
/// creation code, arguments behind it, in place of the code of an account that has the token, so that the account itself transfers. What the
/// constructor answers is four words: amount asked for, taken from the account, received, and whether the token said true or nothing.
contract TransferProbe {
    /// @param token To transfer.
    /// @param to Who is to receive.
    /// @param maximum Of the amount; at most half of what the account has, so that a fee on top can be paid, too.
    /// @param next Who is called after the transfer, if it is not zero: another account whose code is replaced like this one's. What it answers
    /// is appended.
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
        // Same as return answer, which a constructor can't.
        assembly ("memory-safe") {
            return(add(answer, 0x20), mload(answer))
        }
    }
}
